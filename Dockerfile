# agentweb in a small image: wheels are fetched by digest in a first stage and installed in the
# second without a network. Runs as an own user; the folder /data holds all that is to be kept.
FROM python:3.12-slim AS wheels
COPY requirements.lock /build/requirements.lock
RUN pip download --no-cache-dir --require-hashes --only-binary=:all: \
    --dest /build/wheels -r /build/requirements.lock

FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    AGENTWEB_DATA_DIR=/data
RUN --mount=type=bind,from=wheels,source=/build,target=/build \
    pip install --no-cache-dir --no-index --no-deps --compile /build/wheels/*.whl
RUN useradd --system --uid 10001 --no-create-home --home-dir /data agentweb \
    && install --directory --owner=agentweb --group=agentweb --mode=0700 /data
WORKDIR /app
COPY manage.py LICENSE ./
COPY agentweb agentweb
COPY conversations conversations
COPY tools tools
COPY templates templates
COPY static static
RUN python -m compileall -q agentweb conversations tools
USER agentweb
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
# The header keeps a site behind HTTPS from answering its own check with a redirect.
HEALTHCHECK --interval=15s --timeout=5s --start-period=40s --retries=3 \
    CMD ["python", "-c", "from urllib.request import Request, urlopen; \
urlopen(Request('http://127.0.0.1:8000/healthz/live', headers={'X-Forwarded-Proto': 'https'}), timeout=4)"]
ENTRYPOINT ["python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
