// Flows over 802.11b in ns-3 3.37: one case of cases.h, with one seed. Written by `hearsay-lab validate --ns3`.
//
//   ./program CASE SEED        prints a line `NAME VALUE` for each figure
//
// The case gives the strength of signals for each link; places do not matter. A link's losses, and all frames on
// links that can only be sensed, fail after they are received. Machines know each other's MAC addresses and routes.
// There is no queueing discipline above the stations' queues, and no packet is dropped for its age.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace ns3;

/// Strength of the signal of `from` at `to`.
struct Link
{
    unsigned from;
    unsigned to;
    double dbm;
    /// Else it is only sensed, and disturbs.
    bool decodable;
    /// Probability that a frame does not arrive that nothing disturbed.
    double loss;
};

/// A route: at `at`, packets for `to` go to `next`.
struct Route
{
    unsigned at;
    unsigned to;
    unsigned next;
};

struct Flow
{
    unsigned from;
    unsigned to;
    double startsSeconds;
    /// Payload of UDP; 0: TCP, as much as it takes.
    double bitsPerSecond;
};

struct Case
{
    const char* name;
    unsigned stations;
    double seconds;
    /// `DsssRate11Mbps` and the like.
    const char* dataMode;
    const char* basicMode;
    /// The one being sent counts.
    unsigned queuePackets;
    /// Longer frames are announced, in bytes.
    unsigned rtsThreshold;
    unsigned shortTries;
    unsigned longTries;
    /// A signal that is too weak to be decoded holds an idle receiver.
    bool weakSignalsHold;
    /// Links lose ACK, RTS and CTS too.
    bool controlFramesLost;
    std::vector<Link> links;
    std::vector<Route> routes;
    std::vector<Flow> flows;
};

#include "cases.h"

static const double TRANSMIT_DBM = 24.5;
static const double OUT_OF_REACH_DB = 1000;
static const unsigned PAYLOAD_BYTES = 1460;
static const unsigned FIRST_PORT = 5001;
/// When flows begin; by then everything is set up.
static const double WARM_UP_SECONDS = 1;

struct Counts
{
    uint64_t retryDrops = 0;
    uint64_t queueDropsSource = 0;
    uint64_t queueDropsRelays = 0;
    uint64_t dataFrames = 0;
    uint64_t dataFailed = 0;
};

static Counts counts;
/// Stations at which flows begin or end.
static std::set<unsigned> ends;
static std::map<Mac48Address, unsigned> stationOf;
/// The sender of a control frame, which the frame itself may not name.
static std::map<uint64_t, unsigned> senderOfControl;

/// Drops frames by the losses of a receiver's links.
class LossOfLinks : public ErrorModel
{
  public:
    std::map<unsigned, Link> links;
    bool controlFramesLost = false;
    Ptr<UniformRandomVariable> chance = CreateObject<UniformRandomVariable>();

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        WifiMacHeader header;
        packet->PeekHeader(header);
        const bool isData = header.IsData();
        const auto sender =
            isData ? stationOf.find(header.GetAddr2())->second : senderOfControl[packet->GetUid()];
        const auto link = links.find(sender);
        if (link == links.end() || !link->second.decodable)
        {
            return true;
        }
        const double loss = isData || controlFramesLost ? link->second.loss : 0;
        return loss > 0 && chance->GetValue() < loss;
    }

    void DoReset() override
    {
    }
};

static void
Transmitted(unsigned station, Ptr<const Packet> packet, double)
{
    WifiMacHeader header;
    packet->PeekHeader(header);
    if (header.IsData())
    {
        counts.dataFrames++;
        return;
    }
    if (senderOfControl.size() > 10000)
    {
        senderOfControl.clear();
    }
    senderOfControl[packet->GetUid()] = station;
}

static void
CountQueueDrop(unsigned station)
{
    (ends.count(station) ? counts.queueDropsSource : counts.queueDropsRelays)++;
}

static void
DroppedByMac(unsigned station, WifiMacDropReason reason, Ptr<const WifiMpdu>)
{
    if (reason == WIFI_MAC_DROP_FAILED_ENQUEUE)
    {
        CountQueueDrop(station);
    }
    else
    {
        counts.retryDrops++;
    }
}

static void
DroppedAboveMac(unsigned station, Ptr<const Packet>)
{
    CountQueueDrop(station);
}

static void
DataFailed(Mac48Address)
{
    counts.dataFailed++;
}

/// Makes ACK and CTS use this rate. Otherwise a station would take the fastest rates of stations that it has met
/// for basic rates.
static void
SetBasicMode(Ptr<WifiRemoteStationManager> manager, const char* mode)
{
    for (const auto& [address, station] : stationOf)
    {
        manager->RecordDisassociated(address);
    }
    manager->AddBasicMode(WifiMode(mode));
}

static void
SetDefaults(const Case& it)
{
    Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                       QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, it.queuePackets)));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1e6)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
}

static NetDeviceContainer
MakeStations(const Case& it, NodeContainer& nodes)
{
    auto matrix = CreateObject<MatrixPropagationLossModel>();
    matrix->SetDefaultLoss(OUT_OF_REACH_DB);
    double weakest = 0;
    double weakestDecodable = 0;
    for (const auto& link : it.links)
    {
        matrix->SetLoss(nodes.Get(link.from)->GetObject<MobilityModel>(),
                        nodes.Get(link.to)->GetObject<MobilityModel>(),
                        TRANSMIT_DBM - link.dbm,
                        false);
        weakest = std::min(weakest, link.dbm);
        weakestDecodable = link.decodable ? std::min(weakestDecodable, link.dbm) : weakestDecodable;
    }
    // All stand at one place: signals arrive at once.
    auto channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(matrix);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    // Energy makes a medium busy that can be sensed at all, whether or not anything of it was followed.
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.Set("TxPowerStart", DoubleValue(TRANSMIT_DBM));
    phy.Set("TxPowerEnd", DoubleValue(TRANSMIT_DBM));
    phy.Set("CcaEdThreshold", DoubleValue(weakest - 0.1));
    const double followed = (it.weakSignalsHold ? weakest : weakestDecodable) - 0.1;
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "MinimumRssi",
                                  DoubleValue(followed));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode", StringValue(it.dataMode),
                                 "ControlMode", StringValue(it.basicMode),
                                 "NonUnicastMode", StringValue(it.basicMode),
                                 "RtsCtsThreshold", UintegerValue(it.rtsThreshold),
                                 "MaxSsrc", UintegerValue(it.shortTries),
                                 "MaxSlrc", UintegerValue(it.longTries));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    return wifi.Install(phy, mac, nodes);
}

static void
Watch(const Case& it, NodeContainer& nodes, NetDeviceContainer& devices)
{
    for (unsigned station = 0; station < it.stations; station++)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(station));
        stationOf[device->GetMac()->GetAddress()] = station;
        auto manager = device->GetRemoteStationManager();
        // What is said before devices begin is forgotten then.
        Simulator::Schedule(Seconds(WARM_UP_SECONDS / 2), &SetBasicMode, manager, it.basicMode);
        manager->TraceConnectWithoutContext("MacTxDataFailed", MakeCallback(&DataFailed));
        device->GetMac()->TraceConnectWithoutContext("DroppedMpdu",
                                                     MakeBoundCallback(&DroppedByMac, station));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin",
                                                     MakeBoundCallback(&Transmitted, station));
        nodes.Get(station)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            MakeBoundCallback(&DroppedAboveMac, station));
        auto losses = CreateObject<LossOfLinks>();
        losses->controlFramesLost = it.controlFramesLost;
        for (const auto& link : it.links)
        {
            if (link.to == station)
            {
                losses->links.insert({link.from, link});
            }
        }
        device->GetPhy()->SetPostReceptionErrorModel(losses);
    }
}

static Ipv4InterfaceContainer
MakeNetwork(const Case& it, NodeContainer& nodes, NetDeviceContainer& devices)
{
    InternetStackHelper internet;
    Ipv4StaticRoutingHelper routing;
    internet.SetRoutingHelper(routing);
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    auto interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    for (const auto& route : it.routes)
    {
        auto table = routing.GetStaticRouting(nodes.Get(route.at)->GetObject<Ipv4>());
        table->AddHostRouteTo(interfaces.GetAddress(route.to), interfaces.GetAddress(route.next), 1);
    }
    NeighborCacheHelper().PopulateNeighborCache(devices);
    return interfaces;
}

static ApplicationContainer
MakeFlows(const Case& it, NodeContainer& nodes, Ipv4InterfaceContainer& interfaces)
{
    ApplicationContainer sinks;
    for (size_t number = 0; number < it.flows.size(); number++)
    {
        const auto& flow = it.flows[number];
        ends.insert({flow.from, flow.to});
        const uint16_t port = FIRST_PORT + number;
        const bool isTcp = flow.bitsPerSecond == 0;
        const std::string factory = isTcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
        const Address to = InetSocketAddress(interfaces.GetAddress(flow.to), port);
        PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(flow.to)));
        ApplicationContainer source;
        if (isTcp)
        {
            BulkSendHelper bulk(factory, to);
            bulk.SetAttribute("SendSize", UintegerValue(PAYLOAD_BYTES));
            source = bulk.Install(nodes.Get(flow.from));
        }
        else
        {
            OnOffHelper constant(factory, to);
            constant.SetConstantRate(DataRate(uint64_t(flow.bitsPerSecond)), PAYLOAD_BYTES);
            source = constant.Install(nodes.Get(flow.from));
        }
        source.Start(Seconds(WARM_UP_SECONDS + flow.startsSeconds));
    }
    return sinks;
}

static void
Print(const Case& it, const ApplicationContainer& sinks)
{
    std::vector<double> kbps;
    for (size_t number = 0; number < it.flows.size(); number++)
    {
        const auto bytes = DynamicCast<PacketSink>(sinks.Get(number))->GetTotalRx();
        kbps.push_back(bytes * 8 / it.seconds / 1e3);
    }
    const double sum = std::accumulate(kbps.begin(), kbps.end(), 0.0);
    const double frames = std::max<uint64_t>(counts.dataFrames, 1);
    std::cout << "goodput_kbps " << sum << "\n"
              << "drop_retry " << counts.retryDrops << "\n"
              << "drop_q_src " << counts.queueDropsSource << "\n"
              << "drop_q_relay " << counts.queueDropsRelays << "\n"
              << "data_tx " << counts.dataFrames << "\n"
              << "p_data_fail " << counts.dataFailed / frames << "\n";
    if (kbps.size() > 1 && sum > 0)
    {
        std::cout << "share1 " << kbps[0] / sum << "\n";
    }
}

int
main(int argc, char** argv)
{
    if (argc != 3)
    {
        std::cerr << "usage: program CASE SEED, CASE up to " << CASES.size() - 1 << "\n";
        return 2;
    }
    const Case& it = CASES.at(std::stoul(argv[1]));
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(std::stoull(argv[2]));
    SetDefaults(it);
    NodeContainer nodes;
    nodes.Create(it.stations);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
    auto devices = MakeStations(it, nodes);
    auto interfaces = MakeNetwork(it, nodes, devices);
    Watch(it, nodes, devices);
    auto sinks = MakeFlows(it, nodes, interfaces);
    Simulator::Stop(Seconds(WARM_UP_SECONDS + it.seconds));
    Simulator::Run();
    Print(it, sinks);
    Simulator::Destroy();
    return 0;
}
