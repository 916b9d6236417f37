import { CfnParameter, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import { ManagedPolicy, PermissionsBoundary } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct, type IConstruct } from 'constructs';
import type { FunctionName } from '../../functions/function-list.ts';
import { beatTimesOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Feature } from '../../shared/functions/function-manifest.ts';
import { AlarmEmail } from './alarm-email.ts';
import { Alarms } from './alarms.ts';
import { Capacity } from './capacity.ts';
import { functionOf } from './cluster-alarms.ts';
import { CLUSTER_ID_DEFAULT, InvalidPropsError, requestLimits, requireProps } from './cluster-options.ts';
import { createOutputs, pathInStack } from './cluster-outputs.ts';
import { type NodekeeperClusterProps, policyOf, restoredTablesOf } from './cluster-props.ts';
import { markConcurrencyOf, reservedConcurrencyOf } from './concurrency.ts';
import { createControllers } from './controllers.ts';
import { CustomerKey } from './customer-key.ts';
import { Dashboard } from './dashboard.ts';
import { deadLetterQueue } from './dead-letters.ts';
import { EventBus } from './event-bus.ts';
import type { FunctionSurroundings, VariableValues } from './manifest-function.ts';
import { PartQueue } from './part-queue.ts';
import { scheduleAfterPolicies } from './schedule-order.ts';
import { acknowledgeServerlessFindings } from './serverless-findings.ts';
import { createServing } from './serving.ts';
import { Tables } from './tables.ts';
import { TickChain } from './tick.ts';

/** One namespace per cluster: metrics carry no dimension that distinguishes the clusters of an account. */
const metricsNamespaceOf = (clusterId: string): string => `Nodekeeper/${clusterId}`;

/**
 * A node controller without a control plane: tables, functions, the HTTP API and the ticks.
 *
 * @throws InvalidPolicyError, InvalidAccessEntriesError or InvalidPropsError with every fault
 */
export class NodekeeperCluster extends Construct {
  /** URL for kubeconfigs and agents, without a trailing slash. */
  readonly endpoint: string;
  /** The same API without the price of the HTTP API. Undefined without the policy field `apiUrl`. */
  readonly apiUrl: string | undefined;
  readonly clusterId: string;
  readonly policy: Policy;
  readonly tables: Tables;
  /** Event bus of the cluster events. */
  readonly eventBusName: string;
  /** Dashboard in the console. Undefined without a dashboard. */
  readonly dashboardUrl: string | undefined;
  /** Target of the DNS record of the custom domain. */
  readonly domainTarget: string | undefined;

  constructor(scope: Construct, id: string, props: NodekeeperClusterProps = {}) {
    super(scope, id);
    this.policy = policyOf(props);
    requireProps(props, this.policy);
    this.clusterId = props.clusterId ?? CLUSTER_ID_DEFAULT;
    requireOwnClusterId(this);
    const outputPrefix = props.outputPrefix ?? pathInStack(this);

    const staticTokens = staticTokensParameter(this, `${outputPrefix}StaticTokens`);
    this.tables = this.#createTables(props);
    const surroundings = this.#surroundings(props);
    const variables = {
      ...variablesOf(this.tables, this.policy),
      BEAT_TIMES: JSON.stringify(beatTimesOf(this.policy)),
      STATIC_TOKENS: staticTokens.valueAsString,
      EVENT_BUS: surroundings.eventBus.busName,
      ACCOUNT_ID: Stack.of(this).account,
    };
    const serving = createServing(this, props, surroundings, variables);
    const { frontDoor } = serving;
    this.endpoint = frontDoor.endpoint;
    this.apiUrl = serving.apiUrl;
    const functions = new Map<FunctionName, IFunction>([
      ...serving.functions,
      ...createControllers(this, surroundings, {
        ...variables,
        PROBE_URL: this.endpoint,
        ...(serving.heartbeatUrl === undefined ? {} : { HEARTBEAT_URL: serving.heartbeatUrl }),
      }),
    ]);

    const dashboard = this.#createAlarms(props, { surroundings, functions, apiId: frontDoor.apiId });
    this.eventBusName = surroundings.eventBus.busName;
    this.dashboardUrl = dashboard?.url;
    this.domainTarget = frontDoor.domainTarget;
    createOutputs(this, outputPrefix);

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
}

/** Variables that many functions read. */
const variablesOf = ({ health, objects, control }: Tables, policy: Policy): VariableValues => ({
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

function alarmTopicArnOf(scope: Construct, { alarmTopicArn, alarmEmail }: NodekeeperClusterProps): string | undefined {
  return alarmEmail === undefined
    ? alarmTopicArn
    : new AlarmEmail(scope, 'AlarmEmail', { address: alarmEmail }).topicArn;
}

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
