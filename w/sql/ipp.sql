-- HTTP GET
-- user_parameters
select :_ip_address as ip, 1 as n