//! Landlock: which files may be read and written.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};

use super::{InForce, Places};

/// The newest version whose rights for files are asked for. What older kernels lack is left out, for each right.
const VERSION: ABI = ABI::V5;

pub(super) fn limit(places: &Places, in_force: &mut InForce) {
    match restrict(places) {
        Ok(RulesetStatus::FullyEnforced) => in_force.landlock = true,
        Ok(RulesetStatus::PartiallyEnforced) => {
            in_force.landlock = true;
            in_force.skip(
                "this kernel's landlock lacks a part of what is asked of it, which Linux 6.12 has".into(),
            );
        }
        Ok(RulesetStatus::NotEnforced) => in_force.skip(
            "this kernel has no landlock, or it is not on (`lsm=` on its command line): files are protected \
             by their owners and modes alone"
                .into(),
        ),
        Err(error) => in_force.skip(format!("landlock: {error}")),
    }
}

fn restrict(places: &Places) -> Result<RulesetStatus, RulesetError> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let write = read
        | make_bitflags!(AccessFs::{WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | Refer | Truncate});
    let sockets = make_bitflags!(AccessFs::{RemoveFile | MakeSock});
    let rules = |paths: &[PathBuf], access: BitFlags<AccessFs>| {
        path_beneath_rules(paths.to_vec(), access).collect::<Vec<_>>()
    };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        // Signals reach only processes under the same limits: the helper, of the same user, is none.
        .scope(Scope::Signal)?
        .create()?
        .add_rules(rules(&places.read, read))?
        .add_rules(rules(&places.execute, read | AccessFs::Execute))?
        .add_rules(rules(&places.write, write))?
        .add_rules(rules(&places.sockets, sockets))?
        .restrict_self()?;
    Ok(status.ruleset)
}
