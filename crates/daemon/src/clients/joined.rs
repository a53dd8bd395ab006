//! Clients' connections that are joined with an origin's, byte for byte: protocols other than HTTP,
//! tunnels, upgrades, and responses that cannot be parsed.

use crate::driver::{Driver, Held, Outbox, Past, wake};
use crate::uplink::Carried;
use bytes::Bytes;
use host::client::Client;
use host::origin::head_bytes;
use host::parting::abort;
use host::screened::Screened;
use host::splice::{First, Passed, Side, splice};
use host::traffic::Metered;
use http::{HeaderMap, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use node::{Caller, Dial, Fetch, FetchError, Head};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Carries an intercepted connection that may be of any protocol: by the pair of the uplink, or else straight to its
/// server.
pub async fn carry(driver: Driver, stream: Client, client: IpAddr, dialled: SocketAddr) {
    let by_pair = driver.pair().and_then(|pair| pair.dial(driver.clone(), dialled, client));
    match by_pair {
        Some(by_pair) => match by_pair.carry(stream).await {
            Carried::Whole => {}
            Carried::Past(stream, said) => relay(driver, stream, &said, client, dialled).await,
        },
        None => relay(driver, stream, &[], client, dialled).await,
    }
}

/// Relays an intercepted connection that is not HTTP.
pub async fn relay(
    driver: Driver,
    mut stream: Client,
    first: &[u8],
    client: IpAddr,
    dialled: SocketAddr,
) {
    let dialler = driver.pool().dialler();
    match dialler.dial(&Dial::Address(dialled), client, Caller::Intercepted).await {
        Ok(mut origin) => {
            // If it breaks off, both are reset.
            let _ = splice(&mut stream, &mut origin, (first, &[]), &driver.relayed().passed).await;
        }
        // As if its server had refused it.
        Err(_) => abort(&stream),
    }
}

/// Dials an origin whose response cannot be parsed, so that its client can read it directly.
/// Dropped with the client's connection, which waits for it.
pub async fn dial_past(driver: &Driver, fetch: &Fetch, held: Held) -> Result<Past, FetchError> {
    let dialler = driver.pool().dialler();
    let origin = dialler.dial(&fetch.dial, fetch.client, fetch.caller).await?;
    held.line.iter().for_each(|line| line.relayed());
    Ok(Past { origin, first: head_bytes(fetch), held })
}

/// Dials for a `CONNECT` while its client waits, answers it, and joins the two connections.
pub async fn tunnel(
    driver: Driver,
    outbox: Rc<RefCell<Outbox>>,
    dial: Dial,
    client: IpAddr,
    caller: Caller,
) {
    let Some((mut upgrade, held)) = outbox.borrow_mut().upgrade.take() else { return };
    let dialled = tokio::select! {
        dialled = driver.pool().dialler().dial(&dial, client, caller) => dialled,
        // Before the response, the upgrade can only resolve because the client's connection ended.
        _ = &mut upgrade => return,
    };
    let mut origin = match dialled {
        Ok(origin) => origin,
        Err(error) => return answer(&outbox, driver.dialled_in_vain(error)),
    };
    let head = Head { status: StatusCode::OK, headers: HeaderMap::new(), length: Some(0) };
    answer(&outbox, (head, Bytes::new()));
    if let Ok(Ok((mut near, first))) = upgrade.await.map(Screened::<Client>::upgraded) {
        join(&driver, &mut near, &mut origin, (&first, &[]), &held).await;
    }
}

/// Joins a client and an origin that have both switched protocols.
pub async fn join_upgraded(driver: &Driver, near: Upgraded, far: Upgraded, held: &Held) {
    let Ok((mut near, to_far)) = Screened::<Client>::upgraded(near) else { return };
    match Screened::<Metered>::upgraded(far) {
        Ok((mut far, to_near)) => {
            join(driver, &mut near, &mut far, (&to_far, &to_near), held).await;
        }
        // By TLS.
        Err(far) => {
            join(driver, &mut near, &mut TokioIo::new(far), (&to_far, &[]), held).await;
        }
    }
}

fn answer(outbox: &RefCell<Outbox>, (head, text): (Head, Bytes)) {
    let mut left = outbox.borrow_mut();
    left.head = Some(head);
    left.leave_all(text);
    drop(left);
    wake(outbox);
}

/// Sends what was read before, then copies bytes both ways, until both connections have ended or
/// the permit is closed to make room. Then the request's line is whole, if there is one.
pub async fn join(
    driver: &Driver,
    near: &mut impl Side,
    far: &mut impl Side,
    first: First<'_>,
    held: &Held,
) {
    held.permit.tunnel();
    let passed = Passed::part_of(&driver.relayed().passed);
    tokio::select! {
        _ = splice(near, far, first, &passed) => {}
        () = held.permit.closed() => {}
    }
    if let Some(line) = &held.line {
        line.gave(passed.back.get());
        line.finish();
    }
}
