//! Fetches by TLS from an origin on this machine: who is trusted, and what becomes of the rest.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use host::content::Content;
use host::dial::Dialler;
use host::egress;
use host::origin::{Pool, broken};
use host::tls::Tls;
use host::traffic::Traffic;
use http_body_util::BodyExt as _;
use node::driver::DIAL_MAX;
use node::{Access, Caller, Dial, Fetch, FetchError};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A CA of one's own, and the file with its certificate.
struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), issuer.pem()).unwrap();
        Self { issuer, file }
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// A server whose certificate this CA has signed.
    fn server(&self, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.subject_alt_names.push(SanType::IpAddress(HERE));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        // A server that prefers HTTP/2, as most do.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config).into()
    }
}

/// An origin, and the connections that it has accepted.
#[derive(Clone)]
struct Origin {
    address: SocketAddr,
    accepted: Rc<Cell<usize>>,
    /// What the TLS connections among them negotiated.
    resumed: Rc<Cell<usize>>,
}

impl Origin {
    async fn new<F>(serve: impl Fn(TcpStream, Self) -> F + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + 'static,
    {
        let listener = TcpListener::bind((HERE, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let origin = Self { address, accepted: Rc::default(), resumed: Rc::default() };
        let own = origin.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                own.accepted.set(own.accepted.get() + 1);
                tokio::task::spawn_local(serve(stream, own.clone()));
            }
        });
        origin
    }

    /// One that answers all requests over TLS.
    async fn tls(acceptor: TlsAcceptor) -> Self {
        Self::new(move |stream, own| {
            let acceptor = acceptor.clone();
            async move {
                let stream = acceptor.accept(stream).await?;
                let session = stream.get_ref().1;
                assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
                let kind = session.handshake_kind();
                let is_resumed = kind == Some(tokio_rustls::rustls::HandshakeKind::Resumed);
                own.resumed.set(own.resumed.get() + usize::from(is_resumed));
                answer(stream).await
            }
        })
        .await
    }

    fn fetch(&self) -> Fetch {
        Fetch {
            dial: Dial::Address(self.address),
            tls: true,
            client: HERE,
            caller: Caller::ThisMachine,
            method: http::Method::GET,
            path: "/".into(),
            headers: http::HeaderMap::new(),
            exchange: None,
            binding: None,
        }
    }
}

/// Answers each request with one byte.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut head = Vec::new();
    loop {
        head.push(stream.read_u8().await?);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx").await?;
            stream.flush().await?;
        }
    }
}

async fn pool(tls: Option<Tls>) -> Pool {
    let egress = egress::follow(Vec::new(), &[]).await.unwrap();
    Pool::new(Dialler::new(Access::default(), egress, Traffic::default()), tls)
}

/// A pool that trusts this CA besides those of the system.
async fn trusting(ca: &Ca) -> Pool {
    pool(Some(Tls::new(Some(ca.path())).unwrap())).await
}

/// The whole response to a request; its connection is kept.
async fn get(pool: &Pool, fetch: &Fetch) -> Result<Vec<u8>, FetchError> {
    let (response, connection) = pool.ask(fetch, Content::None, None).await?.split();
    let content = response.into_body().collect().await.unwrap().to_bytes();
    pool.keep(connection).await;
    Ok(content.to_vec())
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

#[test]
fn an_origin_with_a_certificate_of_a_trusted_ca_answers() {
    run(async {
        let ca = Ca::new();
        let origin = Origin::tls(ca.server(|_| ())).await;
        let pool = trusting(&ca).await;
        for dial in
            [Dial::Address(origin.address), Dial::Name("localhost".into(), origin.address.port())]
        {
            let fetch = Fetch { dial, ..origin.fetch() };
            assert_eq!(get(&pool, &fetch).await.as_deref(), Ok(&b"x"[..]), "{:?}", fetch.dial);
        }
    });
}

#[test]
fn a_connection_serves_again_but_not_in_clear_and_a_session_is_resumed() {
    run(async {
        let ca = Ca::new();
        let origin = Origin::tls(ca.server(|_| ())).await;
        let pool = trusting(&ca).await;
        let fetch = origin.fetch();
        for _ in 0..3 {
            get(&pool, &fetch).await.unwrap();
        }
        assert_eq!((origin.accepted.get(), origin.resumed.get()), (1, 0));
        let plain = Fetch { tls: false, ..origin.fetch() };
        assert!(
            pool.ask(&plain, Content::None, None).await.is_err(),
            "a TLS connection carried plain HTTP"
        );
        assert_eq!(origin.accepted.get(), 2);
        pool.clear();
        get(&pool, &fetch).await.unwrap();
        assert_eq!((origin.accepted.get(), origin.resumed.get()), (3, 1));
    });
}

#[test]
fn a_certificate_that_proves_nothing_is_refused_and_nothing_is_asked_in_clear() {
    run(async {
        let (ca, stranger) = (Ca::new(), Ca::new());
        let other_name = ca.server(|params| params.subject_alt_names.truncate(1));
        let expired = ca.server(|params| params.not_after = date_time_ymd(2001, 1, 1));
        let early = ca.server(|params| params.not_before = date_time_ymd(4000, 1, 1));
        let untrusted = stranger.server(|_| ());
        for (acceptor, what) in [
            (other_name, "another name"),
            (expired, "expired"),
            (early, "not valid yet"),
            (untrusted, "an unknown CA"),
        ] {
            let origin = Origin::tls(acceptor).await;
            let pool = trusting(&ca).await;
            assert_eq!(get(&pool, &origin.fetch()).await, Err(FetchError::Untrusted), "{what}");
            assert_eq!(origin.accepted.get(), 1, "{what}: it was dialled again");
        }
    });
}

#[test]
fn an_origin_that_speaks_no_tls_is_no_origin_for_https() {
    run(async {
        let ca = Ca::new();
        let pool = trusting(&ca).await;
        let plain = Origin::new(|mut stream, _| async move {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
            std::future::pending().await
        });
        assert_eq!(get(&pool, &plain.await.fetch()).await, Err(FetchError::NotTls));
        let closing = Origin::new(|mut stream, _| async move {
            stream.read_u8().await?;
            stream.shutdown().await
        });
        assert_eq!(get(&pool, &closing.await.fetch()).await, Err(FetchError::Truncated));
    });
}

/// An origin that answers the first request of a connection with these bytes, and after the last of
/// this many requests closes it without announcing the end, as TLS would have it.
async fn careless(acceptor: TlsAcceptor, sent: &'static [u8], requests: usize) -> Origin {
    Origin::new(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await?;
            let mut request = *b"GET / HTTP/1.1\r\n\r\n";
            stream.read_exact(&mut request).await?;
            stream.write_all(sent).await?;
            stream.flush().await?;
            for _ in 1..requests {
                stream.read_exact(&mut request).await?;
            }
            Ok(())
        }
    })
    .await
}

#[test]
fn a_kept_connection_that_was_closed_carelessly_is_replaced() {
    run(async {
        let ca = Ca::new();
        let sent = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
        let origin = careless(ca.server(|_| ()), sent, 2).await;
        let pool = trusting(&ca).await;
        for accepted in [1, 2] {
            assert_eq!(get(&pool, &origin.fetch()).await.as_deref(), Ok(&b"x"[..]));
            assert_eq!(origin.accepted.get(), accepted);
        }
    });
}

#[test]
fn a_body_that_ends_without_the_end_of_tls_is_not_whole() {
    run(async {
        let ca = Ca::new();
        let sent = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nx";
        let origin = careless(ca.server(|_| ()), sent, 1).await;
        let answer = trusting(&ca).await.ask(&origin.fetch(), Content::None, None).await.unwrap();
        let error = answer.split().0.into_body().collect().await.unwrap_err();
        assert_eq!(broken(&error), FetchError::Truncated);
    });
}

#[test]
fn an_origin_that_hangs_in_the_handshake_is_given_up() {
    run(async {
        let ca = Ca::new();
        let pool = trusting(&ca).await;
        let connected = Rc::new(Notify::new());
        let tell = Rc::clone(&connected);
        let silent = Origin::new(move |stream, _| {
            tell.notify_one();
            async move {
                let _open = stream;
                std::future::pending().await
            }
        });
        let fetch = silent.await.fetch();
        let begun = Instant::now();
        // From the handshake on time is virtual: it jumps to the end of the wait, and not beyond. Timers are rounded
        // up to a millisecond.
        let pause = async {
            connected.notified().await;
            tokio::time::pause();
            Instant::now()
        };
        let (got, paused) = tokio::join!(get(&pool, &fetch), pause);
        assert_eq!(got, Err(FetchError::TimedOut));
        assert!(begun.elapsed() >= DIAL_MAX, "{:?}", begun.elapsed());
        assert!(paused.elapsed() <= DIAL_MAX + Duration::from_millis(1), "{:?}", paused.elapsed());
    });
}

#[test]
fn without_tls_nothing_is_dialled() {
    run(async {
        let ca = Ca::new();
        let origin = Origin::tls(ca.server(|_| ())).await;
        let pool = pool(None).await;
        assert_eq!(get(&pool, &origin.fetch()).await, Err(FetchError::NoTls));
        assert_eq!(origin.accepted.get(), 0);
    });
}
