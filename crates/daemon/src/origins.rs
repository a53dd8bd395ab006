//! Transfers from origins.

use crate::clients::join;
use crate::shell::{Shell, Upgrade, Valve};
use host::origin::{Answer, broken};
use http::{StatusCode, header};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use node::{ExchangeId, Fetch, FetchError, FetchId, Input, OriginInput};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;

/// Asks an origin, and gives the engine what it answers.
pub async fn fetch(shell: Shell, id: FetchId, fetch: Fetch, valve: Rc<Valve>) {
    let port = fetch.exchange.and_then(|exchange| shell.port(exchange));
    let content = port.as_ref().and_then(|port| port.borrow_mut().content.take());
    match shell.pool().ask(&fetch, content).await {
        Err(error) => {
            tracing::debug!(?error, dial = ?fetch.dial, "an origin did not answer");
            shell.feed(Input::Origin(OriginInput::End(id, Err(error))));
        }
        Ok(answer) if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            let asked = fetch.headers.contains_key(header::UPGRADE);
            match port.filter(|_| asked).and_then(|port| port.borrow_mut().upgrade.take()) {
                Some(near) => switch(&shell, id, answer, near).await,
                // Nobody asked for that.
                None => shell.feed(Input::Origin(OriginInput::End(id, Err(FetchError::Malformed)))),
            }
        }
        Ok(answer) => take(&shell, id, answer, &valve).await,
    }
    shell.fetched(id);
}

/// Gives the engine a file that somebody publishes, as fast as it grants.
pub async fn take_in(shell: Shell, exchange: ExchangeId, id: FetchId, valve: Rc<Valve>) {
    let port = shell.port(exchange);
    let content = port.and_then(|port| port.borrow_mut().content.take());
    let result = match content {
        Some(mut content) => take_content(&shell, id, &mut content, &valve).await,
        None => Err(FetchError::Truncated),
    };
    shell.feed(Input::Origin(OriginInput::End(id, result)));
    shell.fetched(id);
}

/// Gives the engine a response, as fast as it grants.
async fn take(shell: &Shell, id: FetchId, answer: Answer, valve: &Valve) {
    let (response, connection) = answer.split();
    let (head, mut content) = response.into_parts();
    shell.feed(Input::Origin(OriginInput::Head(id, head.status, head.headers)));
    let result = take_content(shell, id, &mut content, valve).await;
    drop(content);
    shell.feed(Input::Origin(OriginInput::End(id, result)));
    if result.is_ok() {
        shell.pool().keep(connection).await;
    }
}

async fn take_content(
    shell: &Shell,
    id: FetchId,
    content: &mut Incoming,
    valve: &Valve,
) -> Result<(), FetchError> {
    let clock = shell.clock();
    loop {
        while !valve.grants.get().is_open() && !content.is_end_stream() {
            valve.opened.notified().await;
        }
        let frame = poll_fn(|cx| Pin::new(&mut *content).poll_frame(cx));
        let frame = tokio::select! {
            biased;
            frame = frame => frame,
            () = clock.wait_until(valve.grants.get().poll_timeout()) => {
                return Err(FetchError::TimedOut);
            }
        };
        match frame {
            None => return Ok(()),
            Some(Err(error)) => return Err(broken(&error)),
            // Trailers end here.
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    let mut grants = valve.grants.get();
                    grants.took(clock.now(), bytes.len());
                    valve.grants.set(grants);
                    shell.feed(Input::Origin(OriginInput::Body(id, bytes)));
                }
            }
        }
    }
}

/// Both sides leave HTTP: joins their connections.
async fn switch(shell: &Shell, id: FetchId, answer: Answer, (near, place): Upgrade) {
    let (mut response, connection) = answer.split();
    let far = hyper::upgrade::on(&mut response);
    shell.feed(Input::Origin(OriginInput::Head(id, response.status(), response.headers().clone())));
    shell.feed(Input::Origin(OriginInput::End(id, Ok(()))));
    drop(connection);
    if let (Ok(near), Ok(far)) = tokio::join!(near, far) {
        join(shell, &mut TokioIo::new(near), &mut TokioIo::new(far), &[], &place).await;
    }
}
