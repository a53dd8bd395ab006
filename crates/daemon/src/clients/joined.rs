//! Clients' connections that are joined with an origin's, byte for byte: what is no HTTP, tunnels, upgrades,
//! and answers that cannot be read.

use crate::places::Place;
use crate::shell::{End, Past, Port, Shell, wake};
use host::client::Client;
use host::origin::head_bytes;
use host::splice::splice;
use http::{HeaderMap, StatusCode};
use hyper_util::rt::TokioIo;
use node::{Caller, Dial, Fetch, FetchError, Head};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// What is not HTTP crosses untouched.
pub async fn relay(
    shell: Shell,
    mut stream: Client,
    first: &[u8],
    client: IpAddr,
    dialled: SocketAddr,
) {
    let dialler = shell.pool().dialler();
    if let Ok(mut origin) = dialler.dial(&Dial::Address(dialled), client, Caller::Intercepted).await
        && let Ok((there, back)) = splice(&mut stream, &mut origin, first).await
    {
        shell.relayed().set(shell.relayed().get() + there + back);
    }
}

/// Dials an origin whose answer cannot be read, for its client to have it all the same.
pub async fn dial_past(shell: Shell, port: Rc<RefCell<Port>>, fetch: Fetch) {
    match shell.pool().dialler().dial(&fetch.dial, fetch.client, fetch.caller).await {
        Ok(origin) => port.borrow_mut().past = Some(Past { origin, first: head_bytes(&fetch) }),
        // The engine's answer to nothing at all.
        Err(_) => port.borrow_mut().end = Some(End::Broken),
    }
    wake(&port);
}

/// Dials for a `CONNECT`, answers it, and joins the two connections.
pub async fn tunnel(
    shell: Shell,
    port: Rc<RefCell<Port>>,
    dial: Dial,
    client: IpAddr,
    caller: Caller,
) {
    let dialled = shell.pool().dialler().dial(&dial, client, caller).await;
    let status = match &dialled {
        Ok(_) => StatusCode::OK,
        Err(FetchError::Forbidden(_)) => StatusCode::FORBIDDEN,
        Err(FetchError::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
        Err(_) => StatusCode::BAD_GATEWAY,
    };
    let upgrade = {
        let mut port = port.borrow_mut();
        port.head = Some(Head { status, headers: HeaderMap::new(), length: Some(0) });
        port.end = Some(End::Complete);
        port.upgrade.take()
    };
    wake(&port);
    if let (Ok(mut origin), Some((upgrade, place))) = (dialled, upgrade)
        && let Ok(near) = upgrade.await
    {
        join(&shell, &mut TokioIo::new(near), &mut origin, &[], &place).await;
    }
}

/// Joins a client's connection that is no longer HTTP and one to an origin, which is sent `first`, until both have ended or its place
/// is needed.
pub async fn join<A, B>(shell: &Shell, near: &mut A, far: &mut B, first: &[u8], place: &Place)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    place.tunnel();
    let passed = tokio::select! {
        passed = splice(near, far, first) => passed,
        () = place.closed() => return,
    };
    if let Ok((there, back)) = passed {
        shell.relayed().set(shell.relayed().get() + there + back);
    }
}
