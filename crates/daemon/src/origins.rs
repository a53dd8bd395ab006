//! Tasks that feed the engine content: responses of origins, and files that are being published.

use crate::body_credit::BodyCredit;
use crate::clients::join_upgraded;
use crate::driver::{Driver, Upgrade};
use host::content::Content;
use host::interim::Early;
use host::origin::Answer;
use http::{StatusCode, header};
use hyper::body::Incoming;
use node::{ExchangeId, Fetch, FetchError, FetchId, Input, OriginInput};
use std::rc::Rc;
use tokio::sync::mpsc::channel;

/// What comes of a request before the head, and may wait for the engine: interim responses, above all.
const EARLY_MAX: usize = 8;

/// Sends a request to an origin, and feeds the origin's response to the engine.
pub async fn fetch(driver: Driver, id: FetchId, fetch: Fetch, credit: Rc<BodyCredit>) {
    let outbox = fetch.exchange.and_then(|exchange| driver.outbox(exchange));
    let content = outbox.as_ref().and_then(|outbox| outbox.borrow_mut().content.take());
    match ask(&driver, id, &fetch, content.into()).await {
        Err(error) => {
            tracing::debug!(?error, dial = ?fetch.dial, "an origin did not respond");
            driver.feed(Input::Origin(OriginInput::End(id, Err(error))));
        }
        Ok(answer) if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            let asked = fetch.headers.contains_key(header::UPGRADE);
            match outbox.filter(|_| asked).and_then(|outbox| outbox.borrow_mut().upgrade.take()) {
                Some(near) => switch(&driver, id, answer, near).await,
                // A 101 that the client did not ask for.
                None => {
                    driver.feed(Input::Origin(OriginInput::End(id, Err(FetchError::Malformed))))
                }
            }
        }
        Ok(answer) => take(&driver, id, answer, &credit).await,
    }
    driver.fetched(id);
}

/// Sends a request, and feeds the engine what comes early until the response begins.
async fn ask(
    driver: &Driver,
    id: FetchId,
    fetch: &Fetch,
    content: Content,
) -> Result<Answer, FetchError> {
    let (taker, mut told) = channel(EARLY_MAX);
    let answer = driver.pool().ask(fetch, content, Some(taker));
    tokio::pin!(answer);
    loop {
        tokio::select! {
            biased;
            Some(early) = told.recv() => driver.feed(Input::Origin(match early {
                Early::Interim(status, headers) => OriginInput::Interim(id, status, headers),
                Early::Silent => OriginInput::Silent(id),
            })),
            answer = &mut answer => return answer,
        }
    }
}

/// Feeds the engine a file that is being published, as fast as the engine's grants allow.
pub async fn take_in(driver: Driver, exchange: ExchangeId, id: FetchId, credit: Rc<BodyCredit>) {
    let outbox = driver.outbox(exchange);
    let content = outbox.and_then(|outbox| outbox.borrow_mut().content.take());
    let result = match content {
        Some(mut content) => take_content(&driver, id, &mut content, &credit).await,
        None => Err(FetchError::Truncated),
    };
    driver.feed(Input::Origin(OriginInput::End(id, result)));
    driver.fetched(id);
}

/// Feeds the engine an origin's response, as fast as the engine's grants allow.
async fn take(driver: &Driver, id: FetchId, answer: Answer, credit: &BodyCredit) {
    let (response, connection) = answer.split();
    let (head, mut content) = response.into_parts();
    driver.feed(Input::Origin(OriginInput::Head(id, head.status, head.headers)));
    let result = take_content(driver, id, &mut content, credit).await;
    drop(content);
    driver.feed(Input::Origin(OriginInput::End(id, result)));
    if result.is_ok() {
        driver.pool().keep(connection).await;
    }
}

async fn take_content(
    driver: &Driver,
    id: FetchId,
    content: &mut Incoming,
    credit: &BodyCredit,
) -> Result<(), FetchError> {
    let feed = async |bytes| driver.feed(Input::Origin(OriginInput::Body(id, bytes)));
    credit.read(driver.clock(), content, feed).await
}

/// The client and the origin switch protocols (101): joins their connections.
async fn switch(driver: &Driver, id: FetchId, answer: Answer, (near, held): Upgrade) {
    let (mut response, connection) = answer.split();
    let far = hyper::upgrade::on(&mut response);
    driver.feed(Input::Origin(OriginInput::Head(
        id,
        response.status(),
        response.headers().clone(),
    )));
    driver.feed(Input::Origin(OriginInput::End(id, Ok(()))));
    drop(connection);
    if let (Ok(near), Ok(far)) = tokio::join!(near, far) {
        join_upgraded(driver, near, far, &held).await;
    }
}
