# Members of one cluster on fixed machines: a member's name and address must not move, so each has a group of its own.
# nomad job run -var 'hosts={"a":"10.0.0.1","b":"10.0.0.2","c":"10.0.0.3"}' leasehold.nomad.hcl
variable "hosts" {
  description = "Each member's id, and the address of its machine."
  type        = map(string)
}

variable "image" {
  type    = string
  default = "leasehold:0.1.0"
}

job "leasehold" {
  datacenters = ["*"]
  type        = "service"

  # One after another, the next when the one before has its vote.
  update {
    max_parallel     = 1
    health_check     = "checks"
    min_healthy_time = "5s"
    healthy_deadline = "5m"
  }

  dynamic "group" {
    for_each = var.hosts
    labels   = [group.key]

    content {
      count = 1

      # The machine that restarts brings its member back; another one never takes its place.
      constraint {
        attribute = "${attr.unique.network.ip-address}"
        value     = group.value
      }
      disconnect {
        replace = false
      }

      network {
        mode = "host"
        port "lease" { static = 7400 }
        port "health" { static = 9464 }
      }

      service {
        name     = "leasehold"
        provider = "nomad"
        port     = "lease"
        check {
          type     = "http"
          port     = "health"
          path     = "/readyz"
          interval = "2s"
          timeout  = "1s"
        }
      }

      task "member" {
        driver       = "docker"
        user         = "10001"
        kill_signal  = "SIGTERM"
        kill_timeout = "10s"

        config {
          image           = var.image
          network_mode    = "host"
          readonly_rootfs = true
          cap_drop        = ["all"]
          args = concat(
            ["peer", "--id", group.key, "--metrics-address", "${NOMAD_ADDR_health}"],
            ["--key-file", "${NOMAD_SECRETS_DIR}/cluster.key"],
            flatten([for id, host in var.hosts : ["--member", "${id}=${host}:7400"]]),
          )
        }

        template {
          data        = "{{ with nomadVar \"nomad/jobs/leasehold\" }}{{ .cluster_key }}{{ end }}"
          destination = "${NOMAD_SECRETS_DIR}/cluster.key"
          perms       = "0400"
          uid         = 10001
          gid         = 10001
        }

        resources {
          cpu    = 500
          memory = 512
        }
      }
    }
  }
}
