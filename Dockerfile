# agentweb in a small image: wheels are fetched by digest in a first stage and installed in the
# second without a network. Runs as an own user; the folder /data holds all that is to be kept.
# With extras: docker build --build-arg EXTRAS="metrics telemetry storages" -t agentweb .
# For builds that can be repeated give the base by its digest, which this prints:
# docker buildx imagetools inspect python:3.12-slim --format "{{.Manifest.Digest}}"
# docker build --build-arg BASE=python:3.12-slim@sha256:... -t agentweb .
ARG BASE=python:3.12-slim
FROM ${BASE} AS wheels
ARG EXTRAS=""
ARG METRICS="prometheus-client"
ARG TELEMETRY="opentelemetry-sdk opentelemetry-semantic-conventions opentelemetry-proto \
opentelemetry-exporter-otlp-proto-http opentelemetry-exporter-otlp-proto-common \
opentelemetry-exporter-otlp-common opentelemetry-exporter-http-transport \
googleapis-common-protos protobuf"
ARG STORAGES="django-storages boto3 botocore jmespath s3transfer"
COPY requirements.lock requirements-dev.lock /build/
# Of the lock for development only the entries of the extras, with their digests.
RUN names=" "; case "$EXTRAS" in *metrics*) names="$names$METRICS ";; esac; \
    case "$EXTRAS" in *telemetry*) names="$names$TELEMETRY ";; esac; \
    case "$EXTRAS" in *storages*) names="$names$STORAGES ";; esac; \
    awk -v names="$names" '/^[a-z0-9]/ {split($1, a, "=="); kept = index(names, " " a[1] " ")} kept' \
    /build/requirements-dev.lock > /build/extras.lock \
    && pip download --no-cache-dir --require-hashes --only-binary=:all: --no-deps \
    --dest /build/wheels -r /build/requirements.lock -r /build/extras.lock

FROM ${BASE}
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    AGENTWEB_DATA_DIR=/data \
    AGENTWEB_ALIVE_DIR=/tmp
RUN --mount=type=bind,from=wheels,source=/build,target=/build \
    pip install --no-cache-dir --no-index --no-deps --compile /build/wheels/*.whl
# Debian's packages for a tools image, such as postgresql-client for backups.
ARG PACKAGES=""
RUN if [ -n "$PACKAGES" ]; then apt-get update \
    && apt-get install -y --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; fi
RUN useradd --system --uid 10001 --no-create-home --home-dir /data agentweb \
    && install --directory --owner=agentweb --group=agentweb --mode=0700 /data
WORKDIR /app
# The lock and the reasons of its packages, for `manage.py sbom` and `doctor`.
COPY manage.py LICENSE pyproject.toml requirements.lock ./
COPY agentweb agentweb
COPY conversations conversations
COPY tools tools
COPY templates templates
COPY static static
RUN python -m compileall -q agentweb conversations tools
# By number, so that a cluster that refuses root can tell.
USER 10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=40s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; \
urlopen('http://127.0.0.1:8000/healthz/live', timeout=4)"]
ENTRYPOINT ["python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
