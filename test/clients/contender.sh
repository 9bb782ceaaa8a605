#!/usr/bin/env bash
# Like contender.py, using only curl. Times are from /proc/uptime, which has a resolution of 10 ms.
set -u
IFS=, read -ra urls <<< "$1"
resource=$2
jar=${4:-/dev/null}
exec >> "$3"

now() { # milliseconds, rounded down to 10 ms
  local text rest
  read -r text rest < /proc/uptime
  now=$((10#${text/./} * 10))
}

# The cookie of a load balancer keeps this client at its gateway.
ask() { curl --silent --cookie "$jar" --cookie-jar "$jar" --max-time "$1" "${@:2}" --header content-type:application/json; }

# The answer's time counts from just before its request, at $sent.
take_time() { [[ $answer =~ \"validForMs\":([0-9]+) ]] && end=$((sent + BASH_REMATCH[1])); }

while :; do
  url=${urls[RANDOM % ${#urls[@]}]}
  now; sent=$now; end=0
  answer=$(ask 8 "$url/v1/leases" --data "{\"resource\":\"$resource\",\"ttl\":\"$((1 + RANDOM % 3))s\",\"wait\":\"5s\"}") && take_time
  if ! [[ $answer =~ \"lease\":\"([^\"]+)\",.*\"token\":\"([0-9]+)\" ]]; then
    sleep 0.1
    continue
  fi
  lease=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
  for ((looks = 20 * (1 + RANDOM % 8); looks > 0; looks -= 1)); do
    now; at=$now
    sleep 0.02
    now
    # The lease was held at a moment between the two readings, allowing for their resolution.
    ((now + 10 < end)) || break
    echo "$((at + 10))000000 $token"
    if ((looks % 10 == 0)); then
      now; sent=$now
      answer=$(ask 1 --request POST "$url/v1/leases/$lease/renew") && take_time
    fi
  done
  ask 1 --request DELETE "$url/v1/leases/$lease" > /dev/null 2>&1
done
