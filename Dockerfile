# syntax=docker/dockerfile:1
# A static binary in an empty image. Build: docker build -t berth .
# Another builder (a mirror, a pinned digest): --build-arg BUILDER=IMAGE; it needs Rust 1.88 or newer and a C linker.
ARG BUILDER=rust:1-bookworm

FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
# glibc is linked in, so the final stage needs no file but the binary. `--target` keeps the flag away from proc macros,
# which have to be dynamic libraries.
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --release --locked --target x86_64-unknown-linux-gnu

FROM scratch
COPY --from=build /src/target/x86_64-unknown-linux-gnu/release/berth /berth
# Nobody in particular, and not root.
USER 65532:65532
# gRPC, and the admin port.
EXPOSE 50051 10251
HEALTHCHECK --interval=10s --timeout=3s --start-period=2s CMD ["/berth", "healthcheck"]
ENTRYPOINT ["/berth"]
# On loopback, as everywhere. To be reached from outside the container, ask for it:
#   docker run -p 50051:50051 -p 10251:10251 berth serve --addr 0.0.0.0:50051 --admin-addr 0.0.0.0:10251 --insecure
CMD ["serve"]
