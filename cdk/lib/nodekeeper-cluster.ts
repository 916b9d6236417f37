import { CfnOutput, CfnParameter, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { parseAccessEntries } from '../../shared/config/access-entries.ts';
import type {
  ApiEnvironment,
  CloudNodeEnvironment,
  EvictorEnvironment,
  MonitorEnvironment,
  ObjectStreamEnvironment,
  PodGcEnvironment,
  StreamEnvironment,
} from '../../shared/config/environment.ts';
import type { HeartbeatEnvironment } from '../../shared/config/heartbeat-environment.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import type { AccessEntry } from '../../shared/domain/access/access-entry.ts';
import type { Policy } from '../../shared/domain/policy.ts';
import { readAccessEntriesFile, requireAccessEntries } from './access-entries-source.ts';
import { AlarmEmail } from './alarm-email.ts';
import { Alarms } from './alarms.ts';
import { AuditLog } from './audit-log.ts';
import type { Capacity } from './capacity.ts';
import {
  CLUSTER_ID_DEFAULT,
  type CustomDomain,
  type Encryption,
  requestLimits,
  requireProps,
} from './cluster-options.ts';
import { CustomerKey } from './customer-key.ts';
import { Dashboard } from './dashboard.ts';
import { deadLetterQueue } from './dead-letters.ts';
import { allowDescribeInstances, allowDetachVolumes } from './ec2-actions.ts';
import { EventBus } from './event-bus.ts';
import type { FunctionName } from './function-names.ts';
import { HandlerFunction } from './handler-function.ts';
import { FrontDoor } from './http-api.ts';
import { InstanceChanges } from './instance-changes.ts';
import { INSTANCE_IDENTITY_KEY_FILE, readInstanceIdentityKey } from './instance-identity-key.ts';
import { readPolicyFile, requirePolicy } from './policy-source.ts';
import { type RestoredTables, readRestoredTables, requireRestoredTables } from './restored-tables.ts';
import { healthFilters, objectFilters, TableStream } from './streams.ts';
import { allowInstances, allowTables, allowTickets } from './table-actions.ts';
import { Tables } from './tables.ts';
import { Tick } from './tick.ts';
import { Watch } from './watch.ts';

/** Of a cluster: metrics carry no dimension that would tell two clusters of one account apart. */
const metricsNamespaceOf = (clusterId: string): string => `Nodekeeper/${clusterId}`;

export interface NodekeeperClusterProps {
  /**
   * Name of the cluster in logs, metrics and kubeconfigs: lower-case letters, digits and dashes.
   * @default 'nodekeeper'
   */
  readonly clusterId?: string;
  /**
   * YAML file of policy fields (shared/domain/policy.ts); those left out take their default. Not together with `policy`.
   * @default - the documented defaults
   */
  readonly policyFile?: string;
  /** Policy fields given in code; those left out take their default. Not together with `policyFile`. */
  readonly policy?: Partial<Policy>;
  /**
   * People with AWS credentials who may use the cluster, and as whom: IAM roles or users to user names and groups
   * (`nodekeeper:admins`, `nodekeeper:viewers`). Not together with `accessEntriesFile`.
   * @default - nobody
   */
  readonly accessEntries?: readonly AccessEntry[];
  /** YAML file of access entries. Not together with `accessEntries`. */
  readonly accessEntriesFile?: string;
  /**
   * PEM file of the certificate by which EC2 signs identity documents in the region (EC2 User Guide, "RSA-2048 signature").
   * With it, instances of this account and region enrol by themselves in the quarter of an hour after their launch.
   * @default - they need bootstrap tokens, as other machines do
   */
  readonly instanceIdentityCertificateFile?: string;
  /**
   * How the tables are paid.
   * @default - on demand
   */
  readonly capacity?: Capacity;
  /**
   * What becomes of the tables when the stack is deleted.
   * @default RemovalPolicy.RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /**
   * Refuse to delete the tables, by whoever.
   * @default true
   */
  readonly deletionProtection?: boolean;
  /**
   * Point-in-time recovery of the tables, this far back. Days, 1 to 35; 0 turns it off.
   * @default 35
   */
  readonly pointInTimeRecoveryDays?: number;
  /**
   * Tables that a restore made, to run on in place of those of the stack, which are kept but left alone. They keep the settings they
   * were given: capacity, recovery and protection of this construct do not reach them.
   */
  readonly restoredTables?: RestoredTables;
  /** JSON file of `restoredTables`. */
  readonly restoredTablesFile?: string;
  /**
   * Who holds the key of tables, queues and logs.
   * @default - the services themselves, `{ kind: 'awsManaged' }`
   */
  readonly encryption?: Encryption;
  /**
   * How long the functions' logs are kept; the audit log is kept for a year.
   * @default RetentionDays.ONE_MONTH
   */
  readonly logRetention?: RetentionDays;
  /**
   * A name of your own for the endpoint, and its certificate. The API answers at its first name as well.
   * @default - the name that API Gateway gives
   */
  readonly customDomain?: CustomDomain;
  /**
   * Requests a second the HTTP API lets through, all clients together. One node costs 1 / beatIntervalSeconds; beats
   * above it get 429 and count as missed. The account's own limit (10,000 by default) stands above.
   * @default 2000, or twice the beats of `capacity`'s nodes where that is more; fewer than their beats is refused
   */
  readonly requestsPerSecondMax?: number;
  /**
   * Requests that may arrive at once.
   * @default - twice requestsPerSecondMax
   */
  readonly burstRequestsMax?: number;
  /**
   * SNS topic that hears when somebody is to look at the cluster at once, and when that is over. Not together with `alarmEmail`.
   * @default - nobody is told
   */
  readonly alarmTopicArn?: string;
  /** E-mail address to tell, in place of a topic: one is made, and AWS asks the address to confirm. */
  readonly alarmEmail?: string;
  /**
   * Put before the path of a runbook in the description of each alarm: where this repository can be read.
   * @default - the path alone
   */
  readonly runbookBaseUrl?: string;
}

/**
 * A node controller without a control plane: tables, functions, the HTTP API and the ticks.
 *
 * @throws InvalidPolicyError when the policy breaks a rule, with every fault; InvalidAccessEntriesError and
 * InvalidPropsError likewise
 */
export class NodekeeperCluster extends Construct {
  /** URL for kubeconfigs and agents, without a trailing slash. */
  readonly endpoint: string;
  readonly clusterId: string;
  readonly policy: Policy;
  readonly tables: Tables;

  constructor(scope: Construct, id: string, props: NodekeeperClusterProps = {}) {
    super(scope, id);
    this.policy = policyOf(props);
    requireProps(props, this.policy);
    this.clusterId = props.clusterId ?? CLUSTER_ID_DEFAULT;

    const staticTokens = new CfnParameter(this, 'StaticTokens', {
      type: 'String',
      default: '[]',
      noEcho: true,
      // An environment holds 4 KB in all; the policy takes about one.
      maxLength: 640,
      description:
        'Sign-in without IAM, for emergencies: JSON list of {"sha256": hex of the token\'s SHA-256, "user": name, ' +
        '"groups": [names]}. Only hashes are stored.',
    });
    staticTokens.overrideLogicalId('StaticTokens');

    this.tables = new Tables(this, 'Tables', {
      capacity: props.capacity ?? { kind: 'onDemand' },
      policy: this.policy,
      removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN,
      deletionProtection: props.deletionProtection ?? true,
      pointInTimeRecoveryDays: props.pointInTimeRecoveryDays,
      restored: restoredTablesOf(props),
    });

    const logRetention = props.logRetention ?? RetentionDays.ONE_MONTH;
    const metricsNamespace = metricsNamespaceOf(this.clusterId);
    const common = (functionName: FunctionName) => ({
      CLUSTER_ID: this.clusterId,
      POWERTOOLS_SERVICE_NAME: functionName,
      POWERTOOLS_METRICS_NAMESPACE: metricsNamespace,
      POWERTOOLS_LOG_LEVEL: 'WARN' as const,
    });
    const { health, objects, control } = this.tables;
    const allTables = {
      HEALTH_TABLE: health.tableName,
      OBJECTS_TABLE: objects.tableName,
      CONTROL_TABLE: control.tableName,
    };
    const policy = { NODEKEEPER_POLICY: JSON.stringify(this.policy) };
    const accessEntries = JSON.stringify(accessEntriesOf(props));
    const tokens = { STATIC_TOKENS: staticTokens.valueAsString };

    const heartbeat = new HandlerFunction<HeartbeatEnvironment>(this, 'Heartbeat', {
      functionName: 'heartbeat',
      description: 'Renews the Lease of one node',
      environment: {
        ...common('heartbeat'),
        HEALTH_TABLE: health.tableName,
        CONTROL_TABLE: control.tableName,
        ...tokens,
      },
      memoryMegabytes: 256,
      timeoutSeconds: 5,
      logRetention,
    });
    allowTables(heartbeat, 'heartbeat', this.tables);

    const watch =
      this.policy.watchMode === 'stream'
        ? new Watch(this, 'WatchStream', {
            tables: this.tables,
            environment: {
              ...common('watch'),
              ...policy,
              ...allTables,
              ...tokens,
            },
            logRetention,
          })
        : undefined;
    const redirects = watch === undefined ? {} : { WATCH_URL: watch.url };
    const certificate = props.instanceIdentityCertificateFile;
    const instances = certificate === undefined ? {} : { ACCOUNT_ID: Stack.of(this).account };
    const auditLog = new AuditLog(this, 'AuditLog');
    const api = new HandlerFunction<ApiEnvironment & Record<string, string>>(this, 'Api', {
      functionName: 'api',
      description: 'The Kubernetes API',
      environment: {
        ...common('api'),
        // It tells no metrics of its own, and its environment is nearly full.
        POWERTOOLS_METRICS_NAMESPACE: 'Nodekeeper',
        ...policy,
        ...allTables,
        ...tokens,
        ACCESS_ENTRIES: accessEntries,
        ...auditLog.environment,
        ...redirects,
        ...instances,
      },
      bundle: {
        splitsOnDemandImports: true,
        ...(certificate === undefined
          ? {}
          : { files: { [INSTANCE_IDENTITY_KEY_FILE]: readInstanceIdentityKey(certificate) } }),
      },
      memoryMegabytes: 512,
      // One less than the HTTP API's own limit, so that the answer is ours.
      timeoutSeconds: 29,
      logRetention,
    });
    allowTables(api, 'api', this.tables);
    if (watch !== undefined) allowTickets(api, this.tables);
    if (certificate !== undefined) {
      allowDescribeInstances(api);
      allowInstances(api, this.tables);
    }
    api.allow(['logs:PutLogEvents'], [auditLog.streamArn]);

    const frontDoor = new FrontDoor(this, 'FrontDoor', {
      clusterId: this.clusterId,
      heartbeat: heartbeat.lambda,
      api: api.lambda,
      ...requestLimits(props, this.policy),
      customDomain: props.customDomain,
    });
    this.endpoint = frontDoor.endpoint;

    const healthStream = new HandlerFunction<StreamEnvironment>(this, 'HealthStream', {
      functionName: 'health-stream',
      description: 'Welcomes nodes that beat for the first time, or again',
      environment: { ...common('health-stream'), ...policy, ...allTables },
      memoryMegabytes: 256,
      timeoutSeconds: 60,
      logRetention,
    });
    allowTables(healthStream, 'health-stream', this.tables);
    const deadLetters = deadLetterQueue(this, 'DeadLetters');
    new TableStream(this, 'HealthChanges', {
      table: health,
      target: healthStream,
      filters: healthFilters,
      deadLetters,
    });

    const eventBus = new EventBus(this, 'Events', { clusterId: this.clusterId });
    const events = { EVENT_BUS: eventBus.busName };
    const objectStream = new HandlerFunction<ObjectStreamEnvironment>(this, 'ObjectStream', {
      functionName: 'object-stream',
      description: 'Reacts to changes of nodes and pods',
      environment: { ...common('object-stream'), ...policy, ...allTables, ...events },
      memoryMegabytes: 512,
      timeoutSeconds: 60,
      logRetention,
    });
    allowTables(objectStream, 'object-stream', this.tables);
    eventBus.allowSending(objectStream);
    new TableStream(this, 'ObjectChanges', {
      table: objects,
      target: objectStream,
      filters: objectFilters,
      deadLetters,
    });

    const eachPeriod = { periodSeconds: this.policy.nodeMonitorPeriodSeconds, deadLetters };

    const nodeMonitor = new HandlerFunction<MonitorEnvironment>(this, 'NodeMonitor', {
      functionName: 'node-monitor',
      description: 'Notices silence, marks nodes, keeps zone states, queues evictions',
      environment: {
        ...common('node-monitor'),
        ...policy,
        ...allTables,
        PROBE_URL: this.endpoint,
        ...events,
      },
      // 100,000 nodes that go dark at once take 560 MB (`npm run bench -- tick`).
      memoryMegabytes: 1_024,
      timeoutSeconds: 30,
      logRetention,
    });
    allowTables(nodeMonitor, 'node-monitor', this.tables);
    eventBus.allowSending(nodeMonitor);
    new Tick(this, 'NodeMonitorTick', { target: nodeMonitor, ...eachPeriod });

    const evictor = new HandlerFunction<EvictorEnvironment>(this, 'Evictor', {
      functionName: 'evictor',
      description: 'Paces NoExecute taints by zone and deletes pods that are due',
      environment: { ...common('evictor'), ...policy, ...allTables },
      memoryMegabytes: 512,
      timeoutSeconds: 30,
      logRetention,
    });
    allowTables(evictor, 'evictor', this.tables);
    new Tick(this, 'EvictorTick', { target: evictor, ...eachPeriod });

    const cloudNode = new HandlerFunction<CloudNodeEnvironment>(this, 'CloudNode', {
      functionName: 'cloud-node',
      description: 'Asks EC2 about nodes that are not Ready, deletes those whose instance is gone',
      environment: { ...common('cloud-node'), ...policy, ...allTables, ACCOUNT_ID: Stack.of(this).account },
      memoryMegabytes: 512,
      timeoutSeconds: 30,
      logRetention,
    });
    allowTables(cloudNode, 'cloud-node', this.tables);
    allowDescribeInstances(cloudNode);
    new Tick(this, 'CloudNodeTick', { target: cloudNode, ...eachPeriod });
    new InstanceChanges(this, 'InstanceChanges', { target: cloudNode });

    const podGc = new HandlerFunction<PodGcEnvironment>(this, 'PodGc', {
      functionName: 'pod-gc',
      description: 'Collects pods that nobody will finish, detaches volumes that nobody wants',
      environment: { ...common('pod-gc'), ...policy, ...allTables, ACCOUNT_ID: Stack.of(this).account },
      memoryMegabytes: 512,
      timeoutSeconds: 30,
      logRetention,
    });
    allowTables(podGc, 'pod-gc', this.tables);
    allowDescribeInstances(podGc);
    allowDetachVolumes(podGc, this.clusterId);
    new Tick(this, 'PodGcTick', {
      target: podGc,
      periodSeconds: this.policy.podGcPeriodSeconds,
      deadLetters,
    });

    const watched = {
      metricsNamespace,
      policy: this.policy,
      apiId: frontDoor.apiId,
      tables: this.tables,
      functions: {
        heartbeat: heartbeat.lambda,
        'health-stream': healthStream.lambda,
        'object-stream': objectStream.lambda,
        'node-monitor': nodeMonitor.lambda,
        evictor: evictor.lambda,
        'cloud-node': cloudNode.lambda,
        'pod-gc': podGc.lambda,
      },
    };
    const alarms = new Alarms(this, 'Alarms', {
      ...watched,
      clusterId: this.clusterId,
      deadLetters,
      alarmTopicArn: alarmTopicArnOf(this, props),
      runbookBaseUrl: props.runbookBaseUrl,
    });
    const dashboard = new Dashboard(this, 'Dashboard', {
      clusterId: this.clusterId,
      metricsNamespace,
      heartbeat: heartbeat.lambda,
      policy: this.policy,
      alarms,
    });
    output(this, 'EventBusName', eventBus.busName, 'Where the cluster tells its events (docs/events)');
    output(this, 'DashboardUrl', dashboard.url, 'The cluster at a glance');

    output(this, 'Endpoint', this.endpoint, 'Server URL for kubeconfigs and agents');
    output(this, 'ClusterId', this.clusterId, 'Name of this cluster');
    const { region, stackName } = Stack.of(this);
    output(this, 'Region', region, 'Where it runs');
    const command = `npx nodekeeper kubeconfig --stack ${stackName} --region ${region}`;
    output(this, 'KubeconfigCommand', command, 'Writes a kubeconfig for people with AWS credentials');
    if (frontDoor.domainTarget !== undefined) {
      output(this, 'DomainTarget', frontDoor.domainTarget, 'What the DNS record of the custom domain points to');
    }

    // Last, when everything is there that it has to encrypt.
    if (props.encryption?.kind === 'customerManaged') new CustomerKey(this, 'Key', props.encryption).encrypt(this);
  }
}

function policyOf(props: NodekeeperClusterProps): Policy {
  if (props.policyFile !== undefined && props.policy !== undefined) {
    throw new Error('give policyFile or policy, not both');
  }
  return props.policyFile === undefined
    ? requirePolicy(parsePolicy(props.policy ?? {}))
    : readPolicyFile(props.policyFile);
}

function alarmTopicArnOf(scope: Construct, { alarmTopicArn, alarmEmail }: NodekeeperClusterProps): string | undefined {
  return alarmEmail === undefined
    ? alarmTopicArn
    : new AlarmEmail(scope, 'AlarmEmail', { address: alarmEmail }).topicArn;
}

function restoredTablesOf({ restoredTables, restoredTablesFile }: NodekeeperClusterProps): RestoredTables | undefined {
  if (restoredTables !== undefined && restoredTablesFile !== undefined) {
    throw new Error('give restoredTablesFile or restoredTables, not both');
  }
  if (restoredTables !== undefined) return requireRestoredTables(restoredTables);
  return restoredTablesFile === undefined ? undefined : readRestoredTables(restoredTablesFile);
}

function accessEntriesOf(props: NodekeeperClusterProps): readonly AccessEntry[] {
  if (props.accessEntriesFile !== undefined && props.accessEntries !== undefined) {
    throw new Error('give accessEntriesFile or accessEntries, not both');
  }
  return props.accessEntriesFile === undefined
    ? requireAccessEntries(parseAccessEntries(props.accessEntries ?? []))
    : readAccessEntriesFile(props.accessEntriesFile);
}

/** Outputs keep their plain names, so that scripts find them: one cluster a stack. */
function output(scope: Construct, name: string, value: string, description: string): void {
  new CfnOutput(scope, `${name}Output`, { value, description }).overrideLogicalId(name);
}
