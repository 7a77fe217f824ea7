# The command collyrobots in an image without a shell. From the root of the repository:
#
#   docker build -t collyrobots .
#   docker run --rm collyrobots version
#
# The copied folder .git gives the program its version.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /collyrobots ./cmd/collyrobots

# The image has the certificates and the time zones that the command needs.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /collyrobots /usr/local/bin/collyrobots
ENTRYPOINT ["/usr/local/bin/collyrobots"]
