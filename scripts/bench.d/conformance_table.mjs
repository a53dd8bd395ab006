// Counts what passed of the suite http-tests/cache-tests, and explains what failed by the page that lists it.
//
// usage: conformance_table.mjs SUITE PAGE NAME=RESULTS...
// The page's tables have the test's name in their first column, in backquotes, and the reason in their last.
// Exits with 1 if a test failed that the page does not list.

import fs from 'node:fs'
import { pathToFileURL } from 'node:url'

const [suite, page, ...runs] = process.argv.slice(2)
const { default: groups } = await import(pathToFileURL(`${suite}/tests/index.mjs`))
const tests = groups.flatMap(group => group.tests).filter(test => !test.browser_only)
const names = runs.map(run => run.split('=')[0])
const results = runs.map(run => JSON.parse(fs.readFileSync(run.slice(run.indexOf('=') + 1), 'utf8')))
const reasons = new Map(fs.readFileSync(page, 'utf8').split('\n')
  .map(line => line.match(/^\| `([^`]+)` \|(?:.*\|)? ([^|]+) \|$/))
  .filter(row => row).map(row => [row[1], row[2]]))

for (const test of tests) {
  if (results.some(result => result[test.id] === undefined)) {
    console.error(`conformance: ${test.id} has no result: the suite did not run to its end`)
    process.exit(1)
  }
}

function row (...cells) {
  console.log(`| ${cells.join(' | ')} |`)
}

function count (title, chosen) {
  const of = tests.filter(chosen)
  row(`${title}, of ${of.length}`, ...results.map(result => of.filter(test => result[test.id] === true).length))
}

const kind = test => test.kind ?? 'required'
row('passed', ...names)
row('---', ...names.map(() => '--:'))
count('required', test => kind(test) === 'required' && !test.cdn_only)
count('optimal', test => kind(test) === 'optimal' && !test.cdn_only)
count('for CDNs, required', test => kind(test) === 'required' && test.cdn_only)
count('for CDNs, optimal', test => kind(test) === 'optimal' && test.cdn_only)

const counted = tests.filter(test => kind(test) !== 'check')
const failed = counted.filter(test => results.some(result => result[test.id] !== true))
console.log()
row('failed', 'kind', ...names, 'why')
row('---', '---', ...names.map(() => '---'), '---')
for (const test of failed) {
  const said = results.map(result => result[test.id] === true ? 'passed' : result[test.id].join(': '))
  row(`\`${test.id}\``, kind(test), ...said, reasons.get(test.id) ?? '**not listed**')
}

const ids = new Set(failed.map(test => test.id))
for (const id of reasons.keys()) {
  if (!ids.has(id)) console.error(`conformance: ${id} is listed in ${page}, but passes`)
}
const news = failed.filter(test => !reasons.has(test.id))
if (news.length) {
  console.error(`conformance: not listed in ${page}: ${news.map(test => test.id).join(', ')}`)
  process.exit(1)
}
