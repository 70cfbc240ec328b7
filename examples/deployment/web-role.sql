-- The role that rowcall connects as in compose.yaml: it owns nothing. PostgreSQL's image runs this once, with psql.
\getenv web_password WEB_PASSWORD
create role web login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'web_password';
grant connect on database postgres to web;
grant usage on schema public to web;
