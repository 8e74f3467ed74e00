# The command in an image that holds nothing else:
#
#   docker build -t narrows .
#   docker run --rm -v "$PWD:/out" narrows compare --out /out/report
#   sudo chown root friends.txt      # a list belongs to root or to the image's user, 65532
#   docker run --rm -p 47471:47471/udp -p 47471:47471 -v narrows:/data -v "$PWD/friends.txt:/friends.txt:ro" \
#       narrows tunnel serve --listen '[::]:47471' --clients /friends.txt --allow '*:443'
#   docker run --rm -it --user 0 --cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt apparmor=unconfined \
#       --device /dev/net/tun narrows-tools narrows link geo -- curl -O https://example.org/
#
# `compare`, `serve`, `get`, `put`, `tunnel` and `media` need no capability. `tunnel --tun` needs NET_ADMIN and
# /dev/net/tun. `link` makes namespaces, so it needs SYS_ADMIN, NET_ADMIN and /dev/net/tun, and runs programs of its
# own image: copy the command into an image that has them (COPY --from=narrows /narrows /usr/local/bin/).
FROM rust:1.88-alpine@sha256:9dfaae478ecd298b6b5a039e1f2cc4fc040fc818a2de9aa78fa714dea036574d AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist --package narrows-cli --features full \
    && mkdir /data && chown 65532:65532 /data

FROM scratch
COPY --from=build /source/target/dist/narrows /narrows
COPY --from=build --chown=65532:65532 /data /data
COPY LICENSE-APACHE LICENSE-MIT /
# Keys and learned paths are below /data.
ENV HOME=/data XDG_CONFIG_HOME=/data
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["/narrows"]
