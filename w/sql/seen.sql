-- HTTP GET
select count(*) from t2 where v='login-second'