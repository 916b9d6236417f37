import type { RemovalPolicy } from 'aws-cdk-lib';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { AccessEntry } from '../../shared/access/access-entry.ts';
import { parseAccessEntries } from '../../shared/config/access-entries.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { readAccessEntriesFile, requireAccessEntries } from './access-entries-source.ts';
import type { Capacity } from './capacity.ts';
import type { CustomDomain, Encryption } from './cluster-options.ts';
import type { ClusterNetwork } from './network.ts';
import { readPolicyFile, requirePolicy } from './policy-source.ts';
import { type RestoredTables, readRestoredTables, requireRestoredTables } from './restored-tables.ts';

export interface NodekeeperClusterProps {
  /**
   * Name of the cluster in logs, metrics and kubeconfigs: lower-case letters, digits and dashes.
   * @default 'nodekeeper'
   */
  readonly clusterId?: string;
  /**
   * Prefix of the names of the outputs (`Endpoint`, `ClusterId` …) and of the parameter `StaticTokens`: letters and
   * digits. `''` keeps the plain names, for one cluster of a stack at most.
   * @default - the path of the construct in its stack: the cluster `Edge` has the output `EdgeEndpoint`
   */
  readonly outputPrefix?: string;
  /**
   * YAML file of policy fields (shared/fleet/policy.ts). Other fields keep their default. Excludes `policy`.
   * @default - the documented defaults
   */
  readonly policyFile?: string;
  /** Policy fields by name (shared/fleet/policy.ts). Other fields keep their default. Excludes `policyFile`. */
  readonly policy?: { readonly [field: string]: unknown };
  /**
   * Users with AWS credentials who may use the cluster: IAM roles or users, each with its user name and groups
   * (`nodekeeper:admins`, `nodekeeper:viewers`). Excludes `accessEntriesFile`.
   * @default - none
   */
  readonly accessEntries?: AccessEntry[];
  /** YAML file of access entries. Excludes `accessEntries`. */
  readonly accessEntriesFile?: string;
  /**
   * PEM file of the certificate with which EC2 signs identity documents in the Region (EC2 User Guide, "RSA-2048
   * signature"). With it, instances of this account and Region enrol themselves within 15 minutes after their launch.
   * @default - instances need bootstrap tokens, as other machines do
   */
  readonly instanceIdentityCertificateFile?: string;
  /**
   * Billing mode of the tables.
   * @default Capacity.onDemand()
   */
  readonly capacity?: Capacity;
  /**
   * Nodes that the cluster may have. The request limits and the reservation of `heartbeat` follow from it. A larger
   * fleet is throttled, which the alarms `heartbeats-missing` and `requests-refused` report.
   * @default - those of `capacity`, else 1000
   */
  readonly nodesMax?: number;
  /**
   * What happens to the tables when the stack is deleted.
   * @default RemovalPolicy.RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /**
   * Whether DynamoDB refuses to delete the tables.
   * @default true
   */
  readonly deletionProtection?: boolean;
  /**
   * Point-in-time recovery window of the tables. Days, 1 to 35; 0 disables it.
   * @default 35
   */
  readonly pointInTimeRecoveryDays?: number;
  /**
   * Tables from a restore, used instead of the tables of the stack. The stack's tables are kept but not used. Capacity,
   * recovery and protection of this construct do not apply to restored tables.
   */
  readonly restoredTables?: RestoredTables;
  /** JSON file of `restoredTables`. */
  readonly restoredTablesFile?: string;
  /**
   * Owner of the encryption key of tables, queues and logs.
   * @default Encryption.awsManaged()
   */
  readonly encryption?: Encryption;
  /**
   * Retention of the functions' logs. The audit log is kept for a year.
   * @default RetentionDays.ONE_MONTH
   */
  readonly logRetention?: RetentionDays;
  /**
   * A custom domain name of the endpoint, and its certificate. The API stays available at its first name.
   * @default - the name that API Gateway assigns
   */
  readonly customDomain?: CustomDomain;
  /**
   * Heartbeats per second that the HTTP API accepts. One node needs 1 / beatIntervalSeconds. All other requests
   * together have a limit of the same size, in a large cluster less (routeLimits in http-api.ts). Heartbeats above the
   * limit get 429 and count as missed. A limit below the heartbeats of `nodesMax`, or above
   * `accountRequestsPerSecondMax`, is refused.
   * @default - twice the heartbeats of `nodesMax`, at least 100: 200 for 1000 nodes with a heartbeat every 10 s
   */
  readonly requestsPerSecondMax?: number;
  /**
   * Requests per second that API Gateway accepts for all APIs of the account and Region: the applied value of the quota
   * "Throttle rate". Some Regions have 2,500.
   * @default 10000
   */
  readonly accountRequestsPerSecondMax?: number;
  /**
   * Requests that may arrive at once.
   * @default - twice requestsPerSecondMax
   */
  readonly burstRequestsMax?: number;
  /**
   * Concurrent executions that Lambda allows in the account and Region (`nodekeeper doctor --limits`). The cluster
   * reserves executions as docs/operations/quotas.md describes, where the limit allows that. A new account may have 10:
   * then set it, because Lambda refuses any reservation there, and with it the deployment.
   * @default 1000
   */
  readonly accountConcurrency?: number;
  /**
   * Executions to reserve, by the name of the function, in place of those that `accountConcurrency` results in. A
   * reservation is also the maximum of its function. All reservations of the account leave 100 unreserved.
   */
  readonly reservedConcurrency?: { readonly [functionName: string]: number };
  /**
   * Executions that mark nodes at once when hundreds fail together: 2 to 1000. A reservation of `node-marker` must not
   * be smaller.
   * @default - the reservation of node-marker; without one a fifth of `accountConcurrency`, 2 to 32
   */
  readonly markConcurrencyMax?: number;
  /**
   * Private subnets from which the functions call AWS services. The endpoints of the cluster stay public
   * (docs/network.md).
   * @default - Lambda's own network, without a VPC
   */
  readonly network?: ClusterNetwork;
  /** ARN of an IAM policy that limits every role of the cluster. */
  readonly permissionsBoundaryArn?: string;
  /** Tags of every resource of the cluster that can have tags. */
  readonly tags?: { readonly [name: string]: string };
  /**
   * SNS topic that is notified when the cluster needs attention, and when the alarm is over. Excludes `alarmEmail`.
   * @default - no notification
   */
  readonly alarmTopicArn?: string;
  /**
   * E-mail address to notify. The stack creates a topic, and AWS asks the address to confirm. Excludes `alarmTopicArn`.
   */
  readonly alarmEmail?: string;
  /**
   * Prefix of the runbook path in the description of each alarm: the address at which this repository can be read.
   * @default - the path only
   */
  readonly runbookBaseUrl?: string;
  /**
   * Whether the cluster has a dashboard in CloudWatch. The first three of an account are free, others cost $3 per
   * month.
   * @default true
   */
  readonly dashboard?: boolean;
}

/** @throws InvalidPolicyError with every fault */
export function policyOf(props: NodekeeperClusterProps): Policy {
  if (props.policyFile !== undefined && props.policy !== undefined) {
    throw new Error('policyFile and policy exclude each other');
  }
  return props.policyFile === undefined
    ? requirePolicy(parsePolicy(props.policy ?? {}))
    : readPolicyFile(props.policyFile);
}

export function restoredTablesOf({
  restoredTables,
  restoredTablesFile,
}: NodekeeperClusterProps): RestoredTables | undefined {
  if (restoredTables !== undefined && restoredTablesFile !== undefined) {
    throw new Error('restoredTablesFile and restoredTables exclude each other');
  }
  if (restoredTables !== undefined) return requireRestoredTables(restoredTables);
  return restoredTablesFile === undefined ? undefined : readRestoredTables(restoredTablesFile);
}

/** @throws InvalidAccessEntriesError with every fault */
export function accessEntriesOf(props: NodekeeperClusterProps): readonly AccessEntry[] {
  if (props.accessEntriesFile !== undefined && props.accessEntries !== undefined) {
    throw new Error('accessEntriesFile and accessEntries exclude each other');
  }
  return props.accessEntriesFile === undefined
    ? requireAccessEntries(parseAccessEntries(props.accessEntries ?? []))
    : readAccessEntriesFile(props.accessEntriesFile);
}
