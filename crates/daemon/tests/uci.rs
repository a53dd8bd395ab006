//! OpenWrt's /etc/config/hearsay: it becomes the daemon's own file, and a wrong value is named and starts nothing.

use std::process::Command;

use crate::world::World;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// What became of a configuration: the file, if one was written, and what was said.
struct Made {
    file: Option<String>,
    said: String,
}

/// Turns a configuration into the daemon's file, by the package's script and stand-ins for OpenWrt's functions.
fn make(world: &World, config: &str) -> Made {
    let uci = world.write("config", config.as_bytes());
    let file = world.path("hearsay.toml");
    let _ = std::fs::remove_file(&file);
    let script = format!(
        ". {CRATE}/tests/uci/functions.sh; . {CRATE}/../../packaging/openwrt/files/uci.sh; native_file \"$1\""
    );
    // OpenWrt's shell, if it is here.
    let busybox = Command::new("busybox").args(["sh", "-c", "true"]).status();
    let mut shell = match busybox.is_ok_and(|it| it.success()) {
        true => {
            let mut shell = Command::new("busybox");
            shell.arg("sh");
            shell
        }
        false => Command::new("sh"),
    };
    let output = shell
        .args(["-c", &script, "sh"])
        .arg(&file)
        .env("UCI_FILE", uci)
        .env("HEARSAY", env!("CARGO_BIN_EXE_hearsay"))
        .output()
        .expect("a shell starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let file = std::fs::read_to_string(file).ok();
    assert_eq!(output.status.success(), file.is_some(), "{said}");
    Made { file, said }
}

#[test]
fn the_packages_configuration_is_right() {
    let path = format!("{CRATE}/../../packaging/openwrt/files/hearsay.config");
    let text = std::fs::read_to_string(path).expect("the file");
    let world = World::new();
    let made = make(&world, &text);
    let file = made.file.expect(&made.said);
    assert!(file.contains("\npath = \"/tmp/hearsay\"\n"), "{file}");

    // With all that is commented out in it.
    let all = text.replace("\t#list", "\tlist").replace("\t#option", "\toption");
    let key = world.write_secret("mesh.key", b"0123456789abcdef");
    let made = make(&world, &all.replace("/etc/hearsay/mesh.key", &key.display().to_string()));
    let file = made.file.expect(&made.said);
    for line in [
        "allow = [\"2001:db8:7::/48\"]",
        "memory = \"16MiB\"",
        "interfaces = [\"br-lan\"]",
        "ports = [80]",
        "gateway = \"10.77.0.8\"",
        "listen = \"127.0.0.1:9128\"",
        "requests = \"/var/log/hearsay/requests.log\"",
        "clients = \"hash\"",
        "keep = 1",
    ] {
        assert!(file.lines().any(|it| it == line), "{line}: {file}");
    }
    assert!(file.contains("\nkey-file = \""), "{file}");
}

#[test]
fn lists_keep_their_order_and_words() {
    let made = make(
        &World::new(),
        "config hearsay 'main'\n list listen '127.0.0.1:1'\n list listen '[::1]:2'\n\
         config intercept 'intercept'\n list ports 80\n list ports '8080'\n option port '7007'\n",
    );
    let file = made.file.expect(&made.said);
    assert!(file.contains("listen = [\"127.0.0.1:1\", \"[::1]:2\"]\n"), "{file}");
    assert!(file.contains("[intercept]\nport = 7007\nports = [80, 8080]\n"), "{file}");
}

#[test]
fn all_ports_are_one_word() {
    let made =
        make(&World::new(), "config intercept 'intercept'\n list ports 'all'\n list http '8080'\n");
    let file = made.file.expect(&made.said);
    assert!(file.contains("[intercept]\nports = \"all\"\nhttp = [8080]\n"), "{file}");
}

#[test]
fn a_wrong_value_is_named_and_starts_nothing() {
    let world = World::new();
    for (config, said) in [
        ("config store 'store'\n option path 'tmp/x'\n", "'tmp/x' is neither a path"),
        ("config store 'store'\n option size 'much'\n", "much"),
        ("config store 'store'\n option on_flash 'perhaps'\n", "neither 0 nor 1"),
        ("config store 'store'\n option path '/tmp/a\"b'\n", "quotes, backslashes"),
        ("config store 'store'\n option path '/tmp/a\\b'\n", "quotes, backslashes"),
        ("config store 'store'\n option pfad '/tmp/x'\n", "unknown option store.pfad"),
        ("config intercept 'intercept'\n option port '65536'\n", "not a number from 1 to 65535"),
        ("config intercept 'intercept'\n list ports 'http'\n", "'http' is not a number"),
        ("config intercept 'intercept'\n list ports '080'\n", "'080' is not a number"),
        (
            "config intercept 'intercept'\n list interfaces 'a\"]\nport = 1\n'\n",
            "quotes, backslashes",
        ),
        ("config hearsay 'main'\n list listen 'nowhere'\n", "nowhere"),
        ("config hearsay 'main'\n list allow '0.0.0.0/0'\n", "0.0.0.0/0"),
        ("config mesh 'mesh'\n option scheme 'mine'\n", "mine"),
        ("config mesh 'mesh'\n option key_file '/nonexistent/key'\n", "/nonexistent/key"),
    ] {
        let made = make(&world, config);
        assert!(made.file.is_none() && made.said.contains(said), "{config}{}", made.said);
        assert!(made.said.contains("/etc/config/hearsay: "), "{config}{}", made.said);
    }
}

#[test]
fn the_routers_flash_is_refused_unless_the_operator_says_so() {
    let world = World::new();
    let config = |more: &str| {
        format!(
            "config store 'store'\n option path '/overlay-of-a-test/x'\n option size '16MiB'\n{more}"
        )
    };
    let made = make(&world, &config(""));
    assert!(made.file.is_none() && made.said.contains("wears out"), "{}", made.said);
    let made = make(&world, &config(" option on_flash '1'\n"));
    assert!(made.file.expect(&made.said).contains("path = \"/overlay-of-a-test/x\"\n"));
    for path in ["memory", "/tmp/elsewhere", "/mnt/of-a-test/hearsay"] {
        let made = make(&world, &format!("config store 'store'\n option path '{path}'\n"));
        assert!(made.file.expect(&made.said).contains(&format!("path = \"{path}\"\n")));
    }
}
