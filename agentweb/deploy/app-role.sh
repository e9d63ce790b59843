#!/bin/sh
# Makes the role the app runs as, when the database is made. It owns nothing: what it may do is
# granted by the first `manage.py serve`, and it may not change the record.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$DATABASE_APP_PASSWORD" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE agentweb_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
SQL
