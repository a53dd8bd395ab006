use std::time::Duration;

use proptest::prelude::*;
use radio::{LossScope, Station};

use super::*;

/// Three routers in a line, each in range of its neighbours only.
const THREE: &str =
    "gateway = 'g'\nroutes = ['g a b']\n[routers]\ng = [0, 0]\na = [200, 0]\nb = [400, 0.5]\n";

fn load(text: &str, settings: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    from_text("mine", Source { name: "mine.toml", text }, &settings, 1)
}

fn complaint(text: &str, settings: &[(&str, &str)]) -> String {
    load(text, settings).expect_err(text).to_string()
}

fn value<'a>(scenario: &'a Scenario, name: &str) -> Option<&'a str> {
    scenario.keys.iter().find(|key| key.name == name).map(|key| key.value.as_str())
}

#[test]
fn a_file_and_settings_become_a_scenario() {
    let text = "description = 'x'\nbytes = 5\nstagger_s = 2.5\nuplink_mbps = 1.5\nloss = 0.4\n";
    let settings = [("uplink_delay_ms", "0.001"), ("bytes", "6"), ("bytes", "7")];
    let scenario = load(&format!("{text}{THREE}"), &settings).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.description.as_str()), ("mine", "x"));
    let names: Vec<_> = scenario.routers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["g", "a", "b"]);
    assert_eq!((scenario.gateway, scenario.receivers.as_slice()), (0, &[1, 2][..]));
    assert_eq!(scenario.workload.bytes, 7);
    assert_eq!(scenario.workload.stagger, Some(Duration::from_millis(2500)));
    let uplink = Uplink {
        up_bps: 1_500_000,
        down_bps: 1_500_000,
        delay: Duration::from_micros(1),
        loss: 0.0,
        packets_max: 1000,
    };
    assert_eq!(scenario.uplink, uplink);
    assert_eq!((scenario.path(2), scenario.hops(2)), (vec![0, 1, 2], 2));
    // 0.4 * (200 / 250)^2
    let link = scenario.links.get(Station(0), Station(1)).unwrap();
    assert!((link.loss - 0.256).abs() < 1e-12 && link.decodable);
    assert!(!scenario.links.get(Station(0), Station(2)).unwrap().decodable);
}

#[test]
fn tcp_is_as_its_keys_say() {
    assert_eq!(load(THREE, &[]).unwrap().tcp, tcp::Config::default());
    let settings = [
        ("mss", "1000"),
        ("rto_min_s", "0.5"),
        ("tcp_recovery", "sack"),
        ("tcp_timestamps", "true"),
        ("initial_window", "3"),
        ("delayed_ack", "1"),
        ("send_buffer", "20000"),
        ("receive_buffer", "30000"),
    ];
    let expected = tcp::Config {
        mss: 1000,
        rto_min: Duration::from_millis(500),
        recovery: tcp::Recovery::Sack,
        timestamps: true,
        initial_window: 3,
        delayed_ack: 1,
        send_buffer: 20_000,
        receive_buffer: 30_000,
        ..tcp::Config::default()
    };
    assert_eq!(load(THREE, &settings).unwrap().tcp, expected);
    let reno = load(THREE, &[("tcp_recovery", "reno")]).unwrap();
    assert_eq!(reno.tcp.recovery, tcp::Recovery::Reno);
    let wrong = "`tcp_timestamps` must be true or false, not sometimes";
    assert!(complaint(THREE, &[("tcp_timestamps", "sometimes")]).contains(wrong));
}

#[test]
fn the_uplink_is_as_its_keys_say() {
    let settings = [
        ("uplink_mbps", "0.512"),
        ("uplink_up_mbps", "0.128"),
        ("uplink_delay_ms", "100"),
        ("uplink_loss", "0.02"),
        ("uplink_queue", "20"),
    ];
    let uplink = Uplink {
        up_bps: 128_000,
        down_bps: 512_000,
        delay: Duration::from_millis(100),
        loss: 0.02,
        packets_max: 20,
    };
    let scenario = load(THREE, &settings).unwrap();
    assert_eq!((scenario.uplink, value(&scenario, "uplink_up_mbps")), (uplink, Some("0.128")));
    let expected = "mine.toml: `uplink_up_mbps` is 0.0001: it must be 0, for the rate of \
                    `uplink_mbps`, or at least 0.001";
    assert_eq!(complaint(THREE, &[("uplink_up_mbps", "1e-4")]), expected);
    for wrong in [("uplink_loss", "1.1"), ("uplink_loss", "-0.1"), ("uplink_queue", "0")] {
        assert!(complaint(THREE, &[wrong]).contains(" must be a "), "{wrong:?}");
    }
    let far = |settings| load(THREE, settings).unwrap().far;
    assert_eq!((far(&[]), far(&[("far", "pair")])), (FarEnd::None, FarEnd::Pair));
    assert!(complaint(THREE, &[("far", "near")]).contains("none"));
    let scheme = |settings| load(THREE, settings).unwrap().published.map(|it| it.to_string());
    assert_eq!(scheme(&[("far", "pair")]), None);
    let fine = [("far", "pair"), ("uplink", "mrc"), ("degree", "2"), ("smallest", "64")];
    assert_eq!(scheme(&fine).as_deref(), Some("mrc-2-64"));
    let alone = complaint(THREE, &[("uplink", "mrc")]);
    assert!(alone.contains("set `far` to \"pair\""), "{alone}");
    let stray = complaint(THREE, &[("far", "pair"), ("degree", "2")]);
    assert!(stray.contains("set `uplink`"), "{stray}");
    let deep = complaint(THREE, &[("far", "pair"), ("uplink", "mrc"), ("smallest", "32")]);
    assert!(deep.contains("degree 8") && deep.contains("32 bytes"), "{deep}");
    // They have no meaning where nothing crosses the uplink.
    assert!(complaint("hops = 3\ntraffic = 'tcp'\nuplink_loss = 0.1", &[]).contains("`traffic`"));
}

#[test]
fn frames_for_others_are_lost_by_distance_and_routes_are_not() {
    // g and b are 400 m apart, and a is between them; no frame is received beyond 250 m.
    let loss = |settings: &[(&str, &str)], to| {
        let scenario = load(THREE, settings).unwrap();
        assert_eq!(scenario.path(2), [0, 1, 2]);
        let link = *scenario.links.get(Station(0), Station(to)).unwrap();
        assert_eq!((link.decodable, link.loss), (to == 1, 0.0));
        // b stands half a metre off the line.
        link.overheard_loss.map(|it| (it * 1e5).round() / 1e5)
    };
    assert_eq!(loss(&[], 1), None);
    assert_eq!(loss(&[("overhear_m", "400")], 1), Some(0.125));
    assert_eq!(loss(&[("overhear_m", "400"), ("overhear_exponent", "1")], 1), Some(0.5));
    assert_eq!(loss(&[("overhear_m", "800")], 2), Some(0.125));
    // Too far to be heard at all, and too far to overhear although frames for the station itself arrive.
    assert_eq!(
        (loss(&[("overhear_m", "400")], 2), loss(&[("overhear_m", "100")], 1)),
        (None, Some(1.0))
    );
}

#[test]
fn frames_for_others_are_lost_in_spells_if_it_says_so() {
    let spell = |settings: &[(&str, &str)]| load(THREE, settings).unwrap().radio.overhear_spell;
    assert_eq!(spell(&[("overhear_m", "400")]), Duration::ZERO);
    let settings = [("overhear_m", "400"), ("overhear_spell_ms", "2.5")];
    assert_eq!(spell(&settings), Duration::from_micros(2500));
}

#[test]
fn reports_get_every_key_that_applies() {
    let scenario = load(THREE, &[("receivers", "b")]).unwrap();
    assert_eq!(value(&scenario, "gateway"), Some("g"));
    assert_eq!(value(&scenario, "receivers"), Some("b"));
    assert_eq!(value(&scenario, "data_mbps"), Some("11"));
    assert_eq!(value(&scenario, "hops"), None);
    let chain = load("hops = 3", &[]).unwrap();
    assert_eq!((value(&chain, "hops"), value(&chain, "receivers")), (Some("3"), Some("3")));
    assert_eq!(value(&chain, "gateway"), None);
}

#[test]
fn routers_walk_and_links_are_cut_as_the_keys_say() {
    let placed = THREE.replace("routes = ['g a b']", "");
    let moving = [("mobility", "waypoint"), ("walk_m", "500"), ("speed_max_m_s", "1.5")];
    let scenario = load(&placed, &moving).unwrap();
    let changes = scenario.changes.unwrap();
    assert_eq!((changes.movers, changes.cuts), (vec![1, 2], vec![]));
    assert_eq!(changes.walks.area_m, (500.0, 500.0));
    assert_eq!(changes.walks.speed_mps, 1.0..=1.5);
    assert_eq!(changes.routes_every, Duration::from_secs(1));
    let named = load(&placed, &[&moving[..], &[("movers", "g")]].concat()).unwrap();
    assert_eq!(named.changes.unwrap().movers, [0]);
    // Links of fixed routes can be cut too, and cuts are sorted by time.
    let scenario = load(THREE, &[("cuts", "b@9 g:a@0.5")]).unwrap();
    let cut = |router, other, ms| Cut { router, other, at: Duration::from_millis(ms) };
    let expected = [cut(0, Some(1), 500), cut(2, None, 9000)];
    assert_eq!(scenario.changes.unwrap().cuts, expected);
    assert!(expected[0].is_between(1, 0) && !expected[0].is_between(1, 2));
    assert!(expected[1].is_between(1, 2) && !expected[1].is_between(1, 0));
    assert!(load(THREE, &[]).unwrap().changes.is_none());
    let random = load("nodes = 3\narea_m = 100", &moving[..1]).unwrap();
    assert_eq!(random.changes.unwrap().walks.area_m, (100.0, 100.0));
}

#[test]
fn walks_and_cuts_that_make_no_sense_are_told() {
    let placed = THREE.replace("routes = ['g a b']", "");
    let moving = [("mobility", "waypoint"), ("walk_m", "500")];
    for (more, expected) in [
        (("speed_min_m_s", "3"), "`speed_min_m_s` is 3, above `speed_max_m_s`, 2: lower it"),
        (("walk_m", "0"), "needs a square to walk on where routers are placed: say its side"),
        (("movers", "a a"), "`movers` names router a twice"),
        (("movers", "x"), "`movers` names an unknown router `x`"),
    ] {
        let settings = [&moving[..], &[more]].concat();
        assert!(complaint(&placed, &settings).contains(expected), "{more:?}");
    }
    let given = complaint(THREE, &moving);
    assert!(given.contains("`mobility` changes the routes, and `routes` gives them"), "{given}");
    for (text, key, value, expected) in [
        (THREE, "movers", "a", "`movers` do not move: set `mobility`"),
        (THREE, "cuts", "x@1", "`cuts` names an unknown router `x`"),
        (THREE, "cuts", "a:a@1", "`cuts` has a:a@1, and a router has no link with itself"),
        ("hops = 3", "mobility", "waypoint", "or `nodes`, and this one is a chain"),
    ] {
        let text = complaint(text, &[(key, value)]);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_chain_goes_from_each_to_the_next_however_near_they_are() {
    let chain = load("hops = 5\nspacing_m = 10", &[("receivers", "[5, 2]")]).unwrap();
    assert_eq!(chain.path(5), [0, 1, 2, 3, 4, 5]);
    assert_eq!((chain.gateway, chain.receivers.as_slice()), (0, &[5, 2][..]));
}

#[test]
fn requests_may_be_written_one_by_one() {
    let settings = [("requests", "4 4 2:2 4:2"), ("receivers", "1"), ("files", "2")];
    let chain = load("hops = 4", &settings).unwrap();
    assert_eq!(chain.receivers, [4, 2]);
    let asked: Vec<_> = chain.requests(1).iter().map(|it| (it.receiver, it.file)).collect();
    assert_eq!(asked, [(4, 0), (4, 0), (2, 1), (4, 1)]);
    assert_eq!(value(&chain, "requests"), Some("4:1 4:1 2:2 4:2"));
    assert_eq!(value(&chain, "receivers"), Some("4 2"));
}

#[test]
fn flows_are_listed_between_any_routers() {
    let listed = [("traffic", "flows"), ("between", "b:g a:b:cbr@2:1:9 b:a:ssh")];
    let scenario = load(THREE, &listed).unwrap();
    let ends: Vec<_> = scenario.flows.iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(
        (ends, scenario.receivers.as_slice()),
        (vec![(2, 0), (1, 2), (2, 1)], &[0, 2, 1][..])
    );
    assert_eq!(value(&scenario, "between"), Some("b:g:tcp:0 a:b:cbr@2:1:9 b:a:ssh:0"));
    assert_eq!(
        (value(&scenario, "receivers"), value(&scenario, "datagram_bytes")),
        (None, Some("1460"))
    );
    let [traffic, _] = listed;
    for (more, expected) in [
        (
            &[][..],
            "is of 1 to 10000 flows, and `between` lists 0: list them, like between = [\"0:8\"",
        ),
        (&[("between", "g:x")], "`between` names an unknown router `x`: known here: g, a, b"),
        (&[("between", "a:a")], "`between` has a:a:tcp:0, from a router to itself"),
        (&[("between", "g:a:cbr")], "`between` has \"g:a:cbr\": cbr needs a rate"),
        (&[("between", "3")], "`between` has \"3\": a flow is FROM:TO"),
        (&[("between", "true")], "`between` must be a list of flows, like [\"0:8\""),
        (&[("between", "g:a"), ("receivers", "a")], "`receivers` is for `traffic` \"files\" or "),
        (&[("between", "g:a"), ("datagram_bytes", "15")], "a whole number from 16 to 1472"),
    ] {
        let text = complaint(THREE, &[&[traffic], more].concat());
        assert!(text.contains(expected), "{text}");
    }
    let apart = THREE.replace("[400, 0.5]", "[900, 0]").replace("g a b", "g a");
    let text = complaint(&apart, &[traffic, ("between", "b:a")]);
    assert!(
        text.contains("router b has no route to the gateway g")
            && text.ends_with("out of `between`")
    );
}

#[test]
fn packets_are_lost_above_the_mac_if_the_key_says_so() {
    let lost = |settings| load(THREE, settings).unwrap().loss_above_mac;
    assert_eq!((lost(&[]), lost(&[("loss_above_mac", "0.05")])), (0.0, 0.05));
    let text = complaint(THREE, &[("loss_above_mac", "1")]);
    assert!(text.contains("`loss_above_mac` must be a number from 0 to 0.99, not 1"), "{text}");
}

#[test]
fn clients_may_be_behind_the_gateway() {
    let scenario = load(THREE, &[("receivers", "b g")]).unwrap();
    assert_eq!((scenario.receivers.as_slice(), scenario.hops(0)), (&[2, 0][..], 0));
    assert_eq!(load("hops = 2", &[("requests", "0 2")]).unwrap().receivers, [0, 2]);
    let alone = "gateway = 'g'\n[routers]\ng = [0, 0]\n";
    for text in [alone.to_owned(), format!("routes = []\n{alone}")] {
        let scenario = load(&text, &[]).unwrap();
        assert_eq!((scenario.receivers.as_slice(), scenario.path(0)), (&[0][..], vec![0]));
        assert_eq!(scenario.tree_hops(), []);
    }
    let sender = complaint(alone, &[("traffic", "udp")]);
    assert!(sender.starts_with("mine.toml: the gateway g cannot be among"), "{sender}");
}

#[test]
fn routers_intercept_where_the_scheme_says() {
    let scenario = load(THREE, &[("receivers", "b g")]).unwrap();
    let of = |scheme| [0, 1, 2].map(|it| scenario.intercepts(scheme, it));
    let [nowhere, mesh, clients] = [(false, false), (true, false), (false, true)]
        .map(|(mesh, clients)| Intercepts { mesh, clients });
    let both = Intercepts { mesh: true, clients: true };
    for (scheme, expected) in [
        (Scheme::EndToEnd, [nowhere; 3]),
        (Scheme::Default, [both, nowhere, nowhere]),
        (Scheme::Thcp, [clients, nowhere, clients]),
        (Scheme::Ditto, [clients, nowhere, clients]),
    ] {
        assert_eq!(of(scheme), expected, "{scheme}");
    }
    let without = load(THREE, &[]).unwrap();
    assert_eq!(without.intercepts(Scheme::Default, 0), mesh);
    assert_eq!(without.intercepts(Scheme::PhThcp, 0), nowhere);
}

#[test]
fn routers_keep_the_order_of_the_file() {
    let text = "gateway = 9\n[routers]\n9 = [0, 0]\n10 = [1, 0]\n1 = [2, 0]\n";
    let names: Vec<_> = load(text, &[]).unwrap().routers.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["9", "10", "1"]);
}

#[test]
fn what_a_file_says_wrongly_is_told_with_its_line() {
    let three = |before: &str| format!("{before}\n{THREE}");
    for (text, expected) in [
        ("\nhops = ".into(), "mine.toml:2: "),
        ("hops = 1\nhops = 2".into(), "mine.toml:2: duplicate key"),
        (
            "\nhops = 1000".into(),
            "mine.toml:2: `hops` must be a whole number from 1 to 999, not 1000",
        ),
        ("hosp = 4\nhops = 4".into(), "mine.toml:1: unknown key `hosp`: did you mean `hops`?"),
        (three("hops = 4"), "mine.toml:1: `hops` is for chains"),
        ("hops = 4\ngateway = 1".into(), "mine.toml:2: `gateway` is for scenarios with [routers]"),
        ("hops = 4\nroutes = []".into(), "mine.toml:2: `routes` has no meaning in a chain"),
        ("description = 4\nhops = 4".into(), "mine.toml:1: `description` must be a text"),
        ("".into(), "mine.toml: says nothing of routers: give it a table [routers]"),
        (
            "bytes = 1\n[router]\na = [0, 0]".into(),
            "mine.toml:2: unknown key `router`: did you mean",
        ),
        ("routers = 4".into(), "mine.toml:1: `routers` must be a table"),
        ("[routers]\n".into(), "mine.toml:1: a mesh has from 1 to 1000 routers, not 0"),
        (format!("{THREE}c = [0, 0, 0]"), "mine.toml:7: router `c` must be a place"),
        (format!("{THREE}c = [0, nan]"), "mine.toml:7: router `c` must be a place"),
        (format!("{THREE}c = [0, -1e7]"), "mine.toml:7: router `c` must be a place"),
        (format!("{THREE}c = '0 0'"), "mine.toml:7: router `c` must be a place"),
        (format!("{THREE}a = [0, 0]"), "mine.toml:7: duplicate key"),
        (format!("{THREE}\"a b\" = [0, 0]"), "mine.toml:7: `a b` cannot be a router's name"),
        (
            format!("{THREE}loss = 0.5"),
            "mine.toml:7: `loss` stands among the routers: move it above",
        ),
        (format!("{THREE}routes = ['g a']"), "mine.toml:7: `routes` stands among the routers"),
    ] {
        let complaint = complaint(&text, &[]);
        assert!(complaint.starts_with(expected), "{complaint}\n{expected}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    assert_eq!(complaint("hosp = 1\nbyte = 2\nloss = 2", &[]).lines().count(), 3);
    assert_eq!(complaint(THREE, &[("a", "1"), ("loss", "2")]).lines().count(), 2);
    assert_eq!(complaint(THREE, &[("receivers", "x y a a")]).lines().count(), 3);
}

#[test]
fn what_a_setting_says_wrongly_is_told_with_the_setting() {
    for (key, value, expected) in [
        ("losss", "1", "losss=1: unknown key `losss`: did you mean `loss`?"),
        ("loss", "lots", "loss=lots: `loss` must be a number from 0 to 1, not lots"),
        ("hops", "4", "hops=4: `hops` is for chains, and this scenario places its [routers]"),
        ("routes", "[]", "routes=[]: `routes` is not a key: change it in a file of your own"),
        ("", "", "=: unknown key ``: known here: "),
    ] {
        let complaint = complaint(THREE, &[(key, value)]);
        assert!(complaint.starts_with(expected), "{complaint}\n{expected}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (settings, expected) in [
        (
            &[("gateway", "x")][..],
            "mine.toml: the gateway is an unknown router `x`: known here: g, a, b",
        ),
        (
            &[("traffic", "tcp"), ("receivers", "a g")],
            "mine.toml: the gateway g cannot be among the `receivers`: it is the sender of `traffic` \"tcp\"",
        ),
        (&[("receivers", "a a")], "mine.toml: `receivers` names router a twice"),
        (&[("receivers", "a c")], "mine.toml: `receivers` names an unknown router `c`"),
        (&[("gateway", "a")], "mine.toml:2: route \"g a b\" must begin with the gateway, a"),
        (
            &[("range_m", "150")],
            "mine.toml:2: route \"g a b\" passes link g-a, which is 200.0 m long, and `range_m` is 150",
        ),
        (
            &[("carrier_sense_m", "100")],
            "mine.toml: `carrier_sense_m` is 100, less than `range_m`, 250",
        ),
        (
            &[("data_mbps", "1"), ("basic_mbps", "5.5")],
            "mine.toml: `basic_mbps` is 5.5, more than `data_mbps`, 1",
        ),
        (&[("requests", "c")], "mine.toml: `requests` names an unknown router `c`"),
        (&[("requests", "a:2")], "mine.toml: `requests` has a:2, and `files` is 1: raise it"),
        (
            &[("files", "1000"), ("rounds", "1000")],
            "mine.toml: 2 receivers, `files` and `rounds` make 2000000 requests, more than 100000",
        ),
    ] {
        let complaint = complaint(THREE, settings);
        assert!(complaint.starts_with(expected), "{complaint}\n{expected}");
    }
    let nobody = THREE.replace("gateway = 'g'", "");
    assert!(complaint(&nobody, &[]).starts_with("mine.toml: names no gateway"));
    let far = complaint("hops = 4", &[("spacing_m", "300")]);
    assert!(
        far.starts_with("mine.toml: the chain passes link 0-1, which is 300.0 m long"),
        "{far}"
    );
}

#[test]
fn a_link_that_is_short_but_shadowed_is_called_weak() {
    let settings = [("propagation", "log-distance"), ("shadowing_db", "20")];
    let weak = complaint("hops = 30\nspacing_m = 200", &settings);
    assert!(weak.starts_with("mine.toml: the chain passes link "), "{weak}");
    assert!(weak.contains("200.0 m long, within `range_m`, 250, but too weak"), "{weak}");
    assert!(weak.contains("`shadowing_db` 20"), "{weak}");
}

#[test]
fn routes_must_make_a_tree_that_reaches_the_receivers() {
    let with = |routes: &str| {
        let text = THREE.replace("'g a b'", routes).replace("0.5]", "0]\nc = [200, 100]");
        complaint(&text, &[])
    };
    for (routes, expected) in [
        (
            "'g a b', 'g c b'",
            "mine.toml:2: route \"g c b\" goes from c to b, and another from a to it",
        ),
        ("'g a b', 'g a c a'", "mine.toml:2: route \"g a c a\" passes router a twice"),
        ("'g a d'", "mine.toml:2: route \"g a d\" names an unknown router `d`"),
        ("'g'", "mine.toml:2: route \"g\" must lead from the gateway g to a router"),
        ("''", "mine.toml:2: route \"\" must lead from the gateway g to a router"),
        ("4", "mine.toml:2: `routes` must be a list of texts"),
        (
            "'g a b'",
            "mine.toml: router c has no route to the gateway g: name it in a route of `routes`",
        ),
    ] {
        let complaint = with(routes);
        assert!(complaint.starts_with(expected), "{complaint}\n{expected}");
    }
    let alone = THREE.replace("routes = ['g a b']", "").replace("400", "500");
    let alone = complaint(&alone, &[]);
    let expected = "mine.toml: router b has no route to the gateway g: bring it within 250 m";
    assert!(alone.starts_with(expected), "{alone}");
}

/// Routers that request nothing may be unconnected.
#[test]
fn only_receivers_need_routes() {
    let text = THREE.replace("g a b", "g a");
    let scenario = load(&text, &[("receivers", "a")]).unwrap();
    assert_eq!((scenario.hops(2), scenario.path(2)), (0, vec![]));
}

#[test]
fn the_routes_of_the_testbeds_are_those_that_would_be_found() {
    for (name, text) in BUILT_IN.iter().filter(|(name, _)| *name != "chain") {
        let scenario = load(text, &[]).unwrap();
        let found =
            Tree::shortest(&scenario.links, LossScope::Data, scenario.gateway, Metric::Hops);
        assert_eq!(scenario.tree, found, "{name}");
    }
}

/// A line of a file, which is valid now and then.
fn line() -> impl Strategy<Value = String> {
    let names: Vec<_> = keys::all().map(|spec| spec.name).chain(file::STRUCTURE).collect();
    let name = prop_oneof![
        8 => proptest::sample::select(names),
        1 => Just("[routers]"),
        1 => Just("g"),
        1 => Just("a"),
    ];
    let value = prop_oneof![
        "[0-9]{1,3}",
        "-?[0-9]{1,20}(\\.[0-9]{1,3})?(e-?[0-9]{1,3})?",
        Just("nan".to_owned()),
        Just("\"random\"".to_owned()),
        Just("\"babel\"".to_owned()),
        Just("[0, 100.5]".to_owned()),
        Just("[\"g a\"]".to_owned()),
        Just("[\"a\"]".to_owned()),
        "\\[(['\"a-z0-9 ,\\[\\]{}=.]{0,12})\\]",
        "\\PC{0,12}",
    ];
    (name, value).prop_map(|(name, value)| match name {
        "[routers]" => name.to_owned(),
        _ => format!("{name} = {value}"),
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}", key in "\\PC{0,10}", value in "\\PC{0,20}") {
        let _ = load(&text, &[]);
        let _ = load(THREE, &[(&key, &value)]);
        let _ = load("hops = 2", &[(&key, &value)]);
    }

    #[test]
    fn no_lines_make_it_panic_and_complaints_are_lines(
        before in proptest::collection::vec(line(), 0..8),
        after in proptest::collection::vec(line(), 0..4),
        settings in proptest::collection::vec(line(), 0..3),
        base in proptest::sample::select(&["hops = 2", "", THREE][..]),
    ) {
        let text = format!("{}\n{base}\n{}", before.join("\n"), after.join("\n"));
        let settings: Vec<_> = settings.iter().filter_map(|it| it.split_once(" = ")).collect();
        match load(&text, &settings) {
            Err(error) => prop_assert!(error.lines.iter().all(|it| it.lines().count() == 1)),
            Ok(scenario) => {
                for receiver in &scenario.receivers {
                    prop_assert_eq!(scenario.path(*receiver)[0], scenario.gateway);
                }
            }
        }
        let _ = load(base, &settings);
    }

    /// Loading the keys that a report shows gives the same scenario again.
    #[test]
    fn keys_are_shown_as_they_are_taken(
        loss in 0.0..=1.0, exponent in 0.0..16.0, delay_ms in 0.0..60_000.0,
        bytes in 1..=1_000_000_000_u64, stagger_s in 0.0..86_400.0,
    ) {
        let numbers = [
            ("loss", loss), ("loss_exponent", exponent), ("uplink_delay_ms", delay_ms),
            ("bytes", bytes as f64), ("stagger_s", stagger_s),
        ];
        let written = numbers.map(|(key, value)| (key, value.to_string()));
        let settings: Vec<_> = written.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let once = load(THREE, &settings).unwrap();
        let shown: Vec<_> = once.keys.iter().map(|key| (key.name, key.value.as_str())).collect();
        let again = load(THREE, &shown).unwrap();
        prop_assert_eq!(format!("{once:?}"), format!("{again:?}"));
    }
}
