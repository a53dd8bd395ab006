-- Asks for one object under several URLs in turn. Arguments: what to put before the path (a forward
-- proxy wants the whole URL, a reverse proxy nothing), the object, the number of URLs, the Host.
local requests, turn = {}, 0

function init(args)
  for n = 0, tonumber(args[3]) - 1 do
    local path = args[1] .. "/" .. args[2] .. "?n=" .. n
    requests[n] = wrk.format("GET", path, { ["Host"] = args[4] })
  end
end

function request()
  turn = (turn + 1) % (#requests + 1)
  return requests[turn]
end

function done(summary, latency)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("RESULT %.1f %d %d %d\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(50), latency:percentile(99), errors))
end
