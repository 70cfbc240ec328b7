-- Secrets of subscribers may be Ed25519 keys.

alter table rowcall.webhook_subscriber drop constraint webhook_subscriber_secret_check;
alter table rowcall.webhook_subscriber add check (secret ~ '^whs(ec|k)_');
