import { CfnOutput, CfnParameter, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import { ManagedPolicy, PermissionsBoundary } from 'aws-cdk-lib/aws-iam';
import { FunctionUrlAuthType, type IFunction } from 'aws-cdk-lib/aws-lambda';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct, type IConstruct } from 'constructs';
import { apiManifest } from '../../functions/api/manifest.ts';
import { type FunctionName, functionList, type ListedFunction } from '../../functions/function-list.ts';
import { heartbeatManifest } from '../../functions/heartbeat/manifest.ts';
import { watchManifest } from '../../functions/watch/manifest.ts';
import type { AccessEntry } from '../../shared/access/access-entry.ts';
import { ACCESS_ENTRIES_FILE, parseAccessEntries } from '../../shared/config/access-entries.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import { beatTimesOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Feature } from '../../shared/functions/function-manifest.ts';
import { readAccessEntriesFile, requireAccessEntries } from './access-entries-source.ts';
import { AlarmEmail } from './alarm-email.ts';
import { Alarms } from './alarms.ts';
import { AuditLog } from './audit-log.ts';
import { Capacity } from './capacity.ts';
import { functionOf } from './cluster-alarms.ts';
import {
  CLUSTER_ID_DEFAULT,
  type CustomDomain,
  type Encryption,
  InvalidPropsError,
  requestLimits,
  requireProps,
} from './cluster-options.ts';
import { markConcurrencyOf, reservedConcurrencyOf } from './concurrency.ts';
import { CustomerKey } from './customer-key.ts';
import { Dashboard } from './dashboard.ts';
import { deadLetterQueue } from './dead-letters.ts';
import { EventBus } from './event-bus.ts';
import { FrontDoor } from './http-api.ts';
import { INSTANCE_IDENTITY_KEY_FILE, readInstanceIdentityKey } from './instance-identity-key.ts';
import { type FunctionSurroundings, ManifestFunction, type ManifestFunctionProps } from './manifest-function.ts';
import type { ClusterNetwork } from './network.ts';
import { PartQueue } from './part-queue.ts';
import { readPolicyFile, requirePolicy } from './policy-source.ts';
import { type RestoredTables, readRestoredTables, requireRestoredTables } from './restored-tables.ts';
import { scheduleAfterPolicies } from './schedule-order.ts';
import { acknowledgeServerlessFindings } from './serverless-findings.ts';
import { Tables } from './tables.ts';
import { TickChain } from './tick.ts';
import { Watch } from './watch.ts';

/** One namespace per cluster: metrics carry no dimension that distinguishes the clusters of an account. */
const metricsNamespaceOf = (clusterId: string): string => `Nodekeeper/${clusterId}`;

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
   * Nodes that the cluster may have. The request limits and the reservation of `heartbeat` follow from it. A larger fleet
   * is throttled, which the alarms `heartbeats-missing` and `requests-refused` report.
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
   * Heartbeats per second that the HTTP API accepts. One node needs 1 / beatIntervalSeconds. All other requests together
   * have a limit of the same size, in a large cluster less (routeLimits in http-api.ts).
   * Heartbeats above the limit get 429 and count as missed. A limit below the heartbeats of `nodesMax`, or above
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
   * Executions that mark nodes at once when hundreds fail together: 2 to 1000. A reservation of `node-marker` must not be
   * smaller.
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
   * Whether the cluster has a dashboard in CloudWatch. The first three of an account are free, others cost $3 per month.
   * @default true
   */
  readonly dashboard?: boolean;
}

/**
 * A node controller without a control plane: tables, functions, the HTTP API and the ticks.
 *
 * @throws InvalidPolicyError, InvalidAccessEntriesError or InvalidPropsError with every fault
 */
export class NodekeeperCluster extends Construct {
  /** URL for kubeconfigs and agents, without a trailing slash. */
  readonly endpoint: string;
  readonly clusterId: string;
  readonly policy: Policy;
  readonly tables: Tables;
  /** Event bus of the cluster events. */
  readonly eventBusName: string;
  /** Dashboard in the console. Undefined without a dashboard. */
  readonly dashboardUrl: string | undefined;
  /** Target of the DNS record of the custom domain. */
  readonly domainTarget: string | undefined;
  readonly #outputPrefix: string;

  constructor(scope: Construct, id: string, props: NodekeeperClusterProps = {}) {
    super(scope, id);
    this.policy = policyOf(props);
    requireProps(props, this.policy);
    this.clusterId = props.clusterId ?? CLUSTER_ID_DEFAULT;
    requireOwnClusterId(this);
    this.#outputPrefix = props.outputPrefix ?? pathInStack(this);

    const staticTokens = staticTokensParameter(this, `${this.#outputPrefix}StaticTokens`);
    this.tables = this.#createTables(props);
    const surroundings = this.#surroundings(props);
    const variables = {
      ...variablesOf(this.tables, this.policy),
      BEAT_TIMES: JSON.stringify(beatTimesOf(this.policy)),
      STATIC_TOKENS: staticTokens.valueAsString,
      EVENT_BUS: surroundings.eventBus.busName,
      ACCOUNT_ID: Stack.of(this).account,
    };
    const serving = this.#createServing(props, surroundings, variables);
    const { frontDoor } = serving;
    this.endpoint = frontDoor.endpoint;
    const functions = new Map<FunctionName, IFunction>([
      ...serving.functions,
      ...this.#createControllers(surroundings, {
        ...variables,
        ...(serving.heartbeatUrl === undefined ? {} : { HEARTBEAT_URL: serving.heartbeatUrl }),
      }),
    ]);

    const dashboard = this.#createAlarms(props, { surroundings, functions, apiId: frontDoor.apiId });
    this.eventBusName = surroundings.eventBus.busName;
    this.dashboardUrl = dashboard?.url;
    this.domainTarget = frontDoor.domainTarget;
    this.#createOutputs();

    for (const [name, value] of Object.entries(props.tags ?? {})) Tags.of(this).add(name, value);
    if (props.permissionsBoundaryArn !== undefined) {
      const boundary = ManagedPolicy.fromManagedPolicyArn(this, 'Boundary', props.permissionsBoundaryArn);
      PermissionsBoundary.of(this).apply(boundary);
    }
    acknowledgeServerlessFindings(this);
    scheduleAfterPolicies(this);
    // Last, when every construct to encrypt exists.
    const { encryption } = props;
    if (encryption?.isCustomerManaged) new CustomerKey(this, 'Key', { keyArn: encryption.keyArn }).encrypt(this);
  }

  #createTables(props: NodekeeperClusterProps): Tables {
    return new Tables(this, 'Tables', {
      capacity: props.capacity ?? Capacity.onDemand(),
      policy: this.policy,
      removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN,
      deletionProtection: props.deletionProtection ?? true,
      pointInTimeRecoveryDays: props.pointInTimeRecoveryDays,
      restored: restoredTablesOf(props),
    });
  }

  #surroundings(props: NodekeeperClusterProps): FunctionSurroundings {
    const features = new Set<Feature>();
    if (this.policy.watchMode === 'stream') features.add('streamedWatches');
    if (this.policy.heartbeatUrl === 'on') features.add('heartbeatUrl');
    if (props.instanceIdentityCertificateFile !== undefined) features.add('instanceEnrolment');
    const deadLetters = deadLetterQueue(this, 'DeadLetters');
    return {
      clusterId: this.clusterId,
      policy: this.policy,
      metricsNamespace: metricsNamespaceOf(this.clusterId),
      tables: this.tables,
      eventBus: new EventBus(this, 'Events', { clusterId: this.clusterId }),
      deadLetters,
      tickChain: new TickChain(this, 'NodeMonitorTick', { deadLetters }),
      partQueue: new PartQueue(this, 'NodeMarkerParts', {
        deadLetters,
        concurrencyMax: markConcurrencyOf(props),
      }),
      logRetention: props.logRetention ?? RetentionDays.ONE_MONTH,
      features,
      reservedConcurrency: reservedConcurrencyOf(props, this.policy),
      network: props.network,
    };
  }

  /** The functions that answer requests, and the HTTP API that calls them. */
  #createServing(
    props: NodekeeperClusterProps,
    surroundings: FunctionSurroundings,
    variables: Variables,
  ): {
    readonly frontDoor: FrontDoor;
    readonly heartbeatUrl: string | undefined;
    readonly functions: readonly [FunctionName, IFunction][];
  } {
    const heartbeat = new ManifestFunction(this, { manifest: heartbeatManifest, surroundings, variables });
    const heartbeatUrl = surroundings.features.has('heartbeatUrl') ? heartbeatUrlOf(heartbeat.lambda) : undefined;
    const watch = surroundings.features.has('streamedWatches')
      ? new Watch(this, 'WatchStream', { manifest: watchManifest, surroundings, variables })
      : undefined;
    const auditLog = new AuditLog(this, 'AuditLog');
    const certificate = props.instanceIdentityCertificateFile;
    const api = new ManifestFunction(this, {
      manifest: apiManifest,
      surroundings,
      variables: {
        ...variables,
        ACCESS_ENTRIES_FILE,
        ...auditLog.environment,
        ...(watch === undefined ? {} : { WATCH_URL: watch.url }),
      },
      // It writes no metrics of its own, and its environment is nearly full.
      environment: { POWERTOOLS_METRICS_NAMESPACE: 'Nodekeeper' },
      files: {
        [ACCESS_ENTRIES_FILE]: JSON.stringify(accessEntriesOf(props)),
        ...(certificate === undefined ? {} : { [INSTANCE_IDENTITY_KEY_FILE]: readInstanceIdentityKey(certificate) }),
      },
    });
    api.allow(['logs:PutLogEvents'], [auditLog.streamArn]);
    const frontDoor = new FrontDoor(this, 'FrontDoor', {
      clusterId: this.clusterId,
      heartbeat: heartbeat.lambda,
      heartbeatUrl,
      api: api.lambda,
      ...requestLimits(props, this.policy),
      customDomain: props.customDomain,
    });
    const functions: [FunctionName, IFunction][] = [
      ['heartbeat', heartbeat.lambda],
      ['api', api.lambda],
      ...(watch === undefined ? [] : [['watch', watch.lambda] as [FunctionName, IFunction]]),
    ];
    return { frontDoor, heartbeatUrl, functions };
  }

  /** The functions that streams, ticks and events call: all functions that do not answer requests. */
  #createControllers(
    surroundings: FunctionSurroundings,
    variables: Variables,
  ): readonly (readonly [FunctionName, IFunction])[] {
    const known: Variables = {
      ...variables,
      PROBE_URL: this.endpoint,
      TICK_QUEUE_URL: surroundings.tickChain.queue.queueUrl,
      PART_QUEUE_URL: surroundings.partQueue.queue.queueUrl,
    };
    const create = (manifest: ListedFunction, values: Variables): ManifestFunction =>
      new ManifestFunction(this, { manifest, surroundings, variables: values });
    const controllers = functionList.filter(
      ({ triggers }) => !triggers.some(({ kind }) => kind === 'http' || kind === 'functionUrl'),
    );
    const others = new Map(
      controllers.filter((manifest) => !isWaker(manifest)).map((manifest) => [manifest, create(manifest, known)]),
    );
    // Those that wake others last: they know their names.
    const woken = [...others].filter(([{ triggers }]) => triggers.some(({ kind }) => kind === 'tick'));
    const wakers = controllers.filter(isWaker).map((manifest) => {
      const own = woken.filter(([{ name }]) => manifest.wakes?.includes(name) ?? true);
      const names = Object.fromEntries(own.map(([{ name }, { lambda }]) => [name, lambda.functionName]));
      const waker = create(manifest, { ...known, WAKE_FUNCTIONS: Stack.of(this).toJsonString(names) });
      waker.allow(
        ['lambda:InvokeFunction'],
        own.map(([, { lambda }]) => lambda.functionArn),
      );
      return [manifest.name, waker.lambda] as const;
    });
    return [...[...others].map(([{ name }, { lambda }]) => [name, lambda] as const), ...wakers];
  }

  #createAlarms(
    props: NodekeeperClusterProps,
    of: {
      readonly surroundings: FunctionSurroundings;
      readonly functions: ReadonlyMap<FunctionName, IFunction>;
      readonly apiId: string;
    },
  ): Dashboard | undefined {
    const { metricsNamespace, deadLetters, partQueue, tables } = of.surroundings;
    const alarms = new Alarms(this, 'Alarms', {
      metricsNamespace,
      policy: this.policy,
      apiId: of.apiId,
      tables,
      functions: of.functions,
      clusterId: this.clusterId,
      deadLetters,
      parts: partQueue.queue,
      alarmTopicArn: alarmTopicArnOf(this, props),
      runbookBaseUrl: props.runbookBaseUrl,
      requestsPerSecondMax: requestLimits(props, this.policy).requestsPerSecondMax,
    });
    if (props.dashboard === false) return undefined;
    return new Dashboard(this, 'Dashboard', {
      clusterId: this.clusterId,
      metricsNamespace,
      heartbeat: functionOf(of.functions, 'heartbeat'),
      policy: this.policy,
      alarms,
    });
  }

  #createOutputs(): void {
    this.#output('EventBusName', this.eventBusName, 'Event bus of the cluster events (docs/events)');
    if (this.dashboardUrl !== undefined) {
      this.#output('DashboardUrl', this.dashboardUrl, 'Dashboard of the cluster');
    }
    this.#output('Endpoint', this.endpoint, 'Server URL for kubeconfigs and agents');
    this.#output('ClusterId', this.clusterId, 'Name of this cluster');
    const { region, stackName } = Stack.of(this);
    this.#output('Region', region, 'Region of the cluster');
    const which = this.#outputPrefix === '' ? '' : ` --cluster-id ${this.clusterId}`;
    const command = `npx nodekeeper kubeconfig --stack ${stackName}${which} --region ${region}`;
    this.#output('KubeconfigCommand', command, 'Writes a kubeconfig for users with AWS credentials');
    if (this.domainTarget !== undefined) {
      this.#output('DomainTarget', this.domainTarget, 'Target of the DNS record of the custom domain');
    }
  }

  /** Outputs have known names, because the CLI and scripts read them. */
  #output(name: string, value: string, description: string): void {
    new CfnOutput(this, `${name}Output`, { value, description }).overrideLogicalId(`${this.#outputPrefix}${name}`);
  }
}

/** The second way of a heartbeat. The function authenticates requests itself, as those of the HTTP API. */
function heartbeatUrlOf(heartbeat: IFunction): string {
  const { url } = heartbeat.addFunctionUrl({ authType: FunctionUrlAuthType.NONE });
  return url;
}

type Variables = ManifestFunctionProps['variables'];

/** Whether it wakes other functions. */
const isWaker = ({ environment }: ListedFunction): boolean => environment?.includes('WAKE_FUNCTIONS') === true;

/** Variables that many functions read. */
const variablesOf = ({ health, objects, control }: Tables, policy: Policy): Variables => ({
  NODEKEEPER_POLICY: JSON.stringify(policy),
  HEALTH_TABLE: health.tableName,
  OBJECTS_TABLE: objects.tableName,
  CONTROL_TABLE: control.tableName,
});

function staticTokensParameter(scope: Construct, name: string): CfnParameter {
  const parameter = new CfnParameter(scope, 'StaticTokens', {
    type: 'String',
    default: '[]',
    noEcho: true,
    // An environment holds at most 4 KB; the policy uses about one.
    maxLength: 640,
    description:
      'Sign-in without IAM, for emergencies: JSON list of {"sha256": hex of the token\'s SHA-256, "user": name, ' +
      '"groups": [names]}. Only hashes are stored.',
  });
  parameter.overrideLogicalId(name);
  return parameter;
}

function policyOf(props: NodekeeperClusterProps): Policy {
  if (props.policyFile !== undefined && props.policy !== undefined) {
    throw new Error('policyFile and policy exclude each other');
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
    throw new Error('restoredTablesFile and restoredTables exclude each other');
  }
  if (restoredTables !== undefined) return requireRestoredTables(restoredTables);
  return restoredTablesFile === undefined ? undefined : readRestoredTables(restoredTablesFile);
}

function accessEntriesOf(props: NodekeeperClusterProps): readonly AccessEntry[] {
  if (props.accessEntriesFile !== undefined && props.accessEntries !== undefined) {
    throw new Error('accessEntriesFile and accessEntries exclude each other');
  }
  return props.accessEntriesFile === undefined
    ? requireAccessEntries(parseAccessEntries(props.accessEntries ?? []))
    : readAccessEntriesFile(props.accessEntriesFile);
}

/** Names of outputs and parameters consist of letters and digits. */
const pathInStack = (cluster: Construct): string => {
  const { scopes } = cluster.node;
  const ids = scopes.slice(scopes.indexOf(Stack.of(cluster)) + 1).map(({ node }) => node.id);
  return ids.join('').replaceAll(/[^A-Za-z0-9]/g, '');
};

/** The names of alarms, of the dashboard and of the event bus contain the cluster's id. */
function requireOwnClusterId(cluster: NodekeeperCluster): void {
  const others = Stack.of(cluster).node.findAll();
  const isTaken = (other: IConstruct): boolean =>
    other instanceof NodekeeperCluster && other !== cluster && other.clusterId === cluster.clusterId;
  const taken = others.find(isTaken);
  if (taken === undefined) return;
  throw new InvalidPropsError([
    { prop: 'clusterId', value: cluster.clusterId, rule: `is the clusterId of ${taken.node.path} too` },
  ]);
}
