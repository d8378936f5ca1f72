-- macros that say a number of seconds as in "3 min", and an instant in UTC
create or replace macro lasting(seconds) as
    case
        when seconds < 90 then cast(round(seconds) as bigint) || ' s'
        when seconds < 5400 then cast(round(seconds / 60) as bigint) || ' min'
        when seconds < 172800 then cast(round(seconds / 3600) as bigint) || ' h'
        else cast(round(seconds / 86400) as bigint) || ' days'
    end;
create or replace macro clock_text(instant) as strftime(instant, '%Y-%m-%d %H:%M:%SZ');
