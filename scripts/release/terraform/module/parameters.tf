# The parameters of the template. Their numbers are those of the construct @nodekeeper/cdk.
locals {
  settings = jsondecode(file("${path.module}/settings.json"))

  # A number in quotes is a number.
  given_policy = {
    for name, value in var.policy : name => try(tonumber(value), tobool(value), value) if value != null
  }
  policy      = merge(var.network == null ? {} : { watchMode = "longPoll" }, local.given_policy)
  full_policy = merge(local.settings.policyDefaults, local.policy)

  parameters = {
    ClusterId              = var.cluster_id
    StaticTokens           = jsonencode(var.static_tokens)
    CodeBucket             = local.bucket
    CodePrefix             = var.code_prefix
    AccessEntriesHash      = local.api_files_hash
    Policy                 = jsonencode(local.policy)
    DetectionSeconds       = try(local.full_policy.nodeMonitorGracePeriodSeconds + local.full_policy.nodeMonitorPeriodSeconds, 0)
    LogRetentionDays       = var.log_retention_days
    RecoveryDays           = var.point_in_time_recovery_days == null ? 35 : var.point_in_time_recovery_days
    SubnetIds              = var.network == null ? "" : join(",", var.network.subnet_ids)
    SecurityGroupIds       = var.network == null ? "" : join(",", var.network.security_group_ids)
    KeyArn                 = var.kms_key_arn == null ? "" : var.kms_key_arn
    AlarmTopicArn          = var.alarm_topic_arn == null ? "" : var.alarm_topic_arn
    AlarmEmailAddress      = var.alarm_email == null ? "" : var.alarm_email
    DomainName             = var.custom_domain == null ? "" : var.custom_domain.domain_name
    CertificateArn         = var.custom_domain == null ? "" : var.custom_domain.certificate_arn
    HealthTableArn         = var.restored_tables == null ? "" : var.restored_tables.health.tableArn
    HealthStreamArn        = var.restored_tables == null ? "" : var.restored_tables.health.streamArn
    ObjectsTableArn        = var.restored_tables == null ? "" : var.restored_tables.objects.tableArn
    ObjectsStreamArn       = var.restored_tables == null ? "" : var.restored_tables.objects.streamArn
    ControlTableArn        = var.restored_tables == null ? "" : var.restored_tables.control.tableArn
    PermissionsBoundaryArn = var.permissions_boundary_arn == null ? "" : var.permissions_boundary_arn
    RunbookBaseUrl         = var.runbook_base_url == null ? "" : replace(var.runbook_base_url, "//+$/", "")
  }

  # What the stack has.
  options = {
    LongPoll            = var.network != null || try(local.given_policy.watchMode == "longPoll", false)
    Network             = var.network != null
    NetworkIpv6         = var.network == null ? false : var.network.ipv6
    CreatedKey          = var.customer_managed_key && var.kms_key_arn == null
    GivenKey            = var.kms_key_arn != null
    AlarmTopic          = var.alarm_topic_arn != null
    AlarmEmail          = var.alarm_email != null
    NoDashboard         = !var.dashboard
    HeartbeatUrl        = try(local.given_policy.heartbeatUrl == "on", false)
    ApiUrl              = try(local.given_policy.apiUrl == "on", false)
    CustomDomain        = var.custom_domain != null
    RestoredTables      = var.restored_tables != null
    ProvisionedCapacity = var.capacity == null ? false : var.capacity.provisioned_nodes != null
    WarmCapacity        = var.capacity == null ? false : var.capacity.warm_for_nodes != null
    NoEnrolment         = var.instance_identity_public_key == null
    NoRecovery          = var.point_in_time_recovery_days == null ? false : var.point_in_time_recovery_days == 0
    RecoveryWindow      = var.point_in_time_recovery_days == null ? false : var.point_in_time_recovery_days > 0
    Unprotected         = !var.deletion_protection
    PermissionsBoundary = var.permissions_boundary_arn != null
    RunbookAddress      = var.runbook_base_url != null
  }

  # A node sends a heartbeat every 10 s.
  capacity_nodes       = var.capacity == null ? 0 : coalesce(var.capacity.provisioned_nodes, var.capacity.warm_for_nodes, 0)
  stated_nodes         = var.nodes_max == null ? local.capacity_nodes : var.nodes_max
  nodes                = local.stated_nodes > 0 ? local.stated_nodes : 1000
  heartbeats_max       = var.requests_per_second_max == null ? max(100, ceil(local.nodes / 5)) : var.requests_per_second_max
  heartbeats_burst_max = var.burst_requests_max == null ? local.heartbeats_max * 2 : var.burst_requests_max
  requests_max         = min(local.heartbeats_max, max(2000, ceil(local.heartbeats_max / 4)))

  advised_concurrency = { heartbeat = max(100, ceil(local.nodes / 50)), api = 100, watch = 50, node-monitor = 10, evictor = 5 }
  advises             = var.account_concurrency - sum(values(local.advised_concurrency)) >= 100
  given_concurrency   = var.reserved_concurrency == null ? {} : var.reserved_concurrency
  reserved            = merge({ for name, count in local.advised_concurrency : name => count if local.advises && var.reserved_concurrency == null }, local.given_concurrency)
  reservations        = { for parameter, name in local.settings.reservations : parameter => try(tostring(local.reserved[name]), "") }
  mark_concurrency    = try(local.given_concurrency["node-marker"], min(32, floor(var.account_concurrency / 5)))

  limits = {
    PendingPodAlarmSeconds       = local.full_policy.pendingPodAlarmSeconds
    WorkloadShortageAlarmSeconds = local.full_policy.workloadShortageAlarmSeconds

    RequestsPerSecondMax = local.requests_max
    RequestsBurstMax     = min(local.heartbeats_burst_max, local.requests_max * 2)
    RefusedPerMinute     = 60 * max(10, ceil(local.heartbeats_max / 10))
    MarkConcurrencyMax   = var.mark_concurrency_max == null ? min(1000, max(2, local.mark_concurrency)) : var.mark_concurrency_max
  }

  # Load of the nodes in units per second, at 70 % utilisation: 250 bytes of each node are read every 5 s, a heartbeat is
  # written every 10 s, a status is read and written every 300 s, a whole Node of 18 units every day.
  health_reads  = max(5, ceil(local.capacity_nodes * 250 * 10 / (4096 * 5 * 7)))
  health_writes = max(5, ceil(local.capacity_nodes * 31 * 10 / (300 * 7)))
  object_reads  = max(5, ceil(local.capacity_nodes * 10 / (300 * 7)))
  object_writes = max(5, ceil(local.capacity_nodes * 18 * 10 / (86400 * 7)))
  # For many Nodes that change at once: a twentieth of them in 300 s, at most all in 60 s.
  object_writes_ready = ceil(local.capacity_nodes * 18 / (20 * 300))
  object_writes_most  = ceil(local.capacity_nodes * 18 / 60)

  units = {
    HealthReadUnits       = local.health_reads
    HealthReadUnitsMin    = max(5, ceil(local.health_reads / 10))
    HealthReadUnitsMax    = local.health_reads * 10
    HealthReadUnitsWarm   = max(12000, ceil(local.capacity_nodes * 250 / (4096 * 5)))
    HealthWriteUnits      = local.health_writes
    HealthWriteUnitsMin   = max(5, ceil(local.health_writes / 10))
    HealthWriteUnitsMax   = local.health_writes * 10
    HealthWriteUnitsWarm  = max(4000, ceil(local.capacity_nodes * 31 * 2 / 300))
    ObjectsReadUnits      = local.object_reads
    ObjectsReadUnitsMin   = max(5, ceil(local.object_reads / 10))
    ObjectsReadUnitsMax   = local.object_reads * 10
    ObjectsReadUnitsWarm  = max(12000, ceil(local.capacity_nodes / 300))
    ObjectsWriteUnits     = max(local.object_writes, local.object_writes_ready)
    ObjectsWriteUnitsMin  = max(5, ceil(local.object_writes / 10), local.object_writes_ready)
    ObjectsWriteUnitsMax  = max(local.object_writes * 10, local.object_writes_most)
    ObjectsWriteUnitsWarm = max(4000, ceil(local.capacity_nodes * 18 * 2 / 86400))
  }

  # Validation of a variable sees only that variable in the Terraform that versions.tf allows.
  policy_faults = [
    for name, value in local.given_policy :
    "policy.${name} ${try(local.settings.policyInputs[name].rule, "is no input of this module")}: ${jsonencode(value)}"
    if !try(contains(local.settings.policyInputs[name].values, value), false) && !try(
      value >= local.settings.policyInputs[name].least && value <= local.settings.policyInputs[name].most &&
      (floor(value) == value || !local.settings.policyInputs[name].isWhole),
      false,
    )
  ]
  unknown_functions = [
    for name in keys(local.given_concurrency) : name if !contains(values(local.settings.reservations), name)
  ]
  beats_per_second = local.stated_nodes / 10
  unreserved       = var.account_concurrency - sum(concat([0], values(local.reserved)))
  faults = concat(
    local.policy_faults,
    [for name in local.unknown_functions : "reserved_concurrency.${name} is no function: ${join(", ", values(local.settings.reservations))}"],
    var.network != null && try(local.given_policy.watchMode == "stream", false) ? ["policy.watchMode must be longPoll with network: function URLs do not stream inside of a VPC"] : [],
    var.alarm_email != null && var.alarm_topic_arn != null ? ["alarm_email cannot be combined with alarm_topic_arn"] : [],
    var.removal_policy == "destroy" && var.restored_tables != null ? ["removal_policy must be retain with restored_tables: a deletion of the stack deletes the tables from before the restore"] : [],
    var.requests_per_second_max != null && local.heartbeats_max < local.beats_per_second ? ["requests_per_second_max must allow the ${ceil(local.beats_per_second)} heartbeats per second of ${local.stated_nodes} nodes: ${local.heartbeats_max}"] : [],
    local.heartbeats_max > var.account_requests_per_second_max ? ["requests_per_second_max is ${local.heartbeats_max}, more than API Gateway accepts for the account and Region (${var.account_requests_per_second_max}): request a higher quota, then set account_requests_per_second_max"] : [],
    length(local.given_concurrency) > 0 && local.unreserved < 100 ? ["reserved_concurrency must leave 100 of the account's ${var.account_concurrency} executions unreserved: ${local.unreserved}"] : [],
  )
}
