import { CfnOutput, CfnParameter, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { apiManifest } from '../../shared/api/manifest.ts';
import { watchManifest } from '../../shared/api/watch/manifest.ts';
import { parseAccessEntries } from '../../shared/config/access-entries.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import type { AccessEntry } from '../../shared/domain/access/access-entry.ts';
import type { Feature } from '../../shared/domain/functions/function-manifest.ts';
import type { Policy } from '../../shared/domain/policy.ts';
import { type FunctionName, functionList } from '../../shared/function-list.ts';
import { heartbeatManifest } from '../../shared/heartbeat/manifest.ts';
import { readAccessEntriesFile, requireAccessEntries } from './access-entries-source.ts';
import { AlarmEmail } from './alarm-email.ts';
import { Alarms } from './alarms.ts';
import { AuditLog } from './audit-log.ts';
import type { Capacity } from './capacity.ts';
import { functionOf } from './cluster-alarms.ts';
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
import { EventBus } from './event-bus.ts';
import { FrontDoor } from './http-api.ts';
import { INSTANCE_IDENTITY_KEY_FILE, readInstanceIdentityKey } from './instance-identity-key.ts';
import { type FunctionSurroundings, ManifestFunction, type ManifestFunctionProps } from './manifest-function.ts';
import { readPolicyFile, requirePolicy } from './policy-source.ts';
import { type RestoredTables, readRestoredTables, requireRestoredTables } from './restored-tables.ts';
import { Tables } from './tables.ts';
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

    const staticTokens = staticTokensParameter(this);
    this.tables = this.#createTables(props);
    const surroundings = this.#surroundings(props);
    const variables = {
      ...variablesOf(this.tables, this.policy),
      STATIC_TOKENS: staticTokens.valueAsString,
      EVENT_BUS: surroundings.eventBus.busName,
      ACCOUNT_ID: Stack.of(this).account,
    };
    const serving = this.#createServing(props, surroundings, variables);
    const { frontDoor } = serving;
    this.endpoint = frontDoor.endpoint;
    const functions = new Map<FunctionName, IFunction>([
      ...serving.functions,
      ...this.#createControllers(surroundings, variables),
    ]);

    const dashboard = this.#createAlarms(props, { surroundings, functions, apiId: frontDoor.apiId });
    this.#createOutputs({ surroundings, dashboard, frontDoor });

    // Last, so that everything that it encrypts exists.
    if (props.encryption?.kind === 'customerManaged') new CustomerKey(this, 'Key', props.encryption).encrypt(this);
  }

  #createTables(props: NodekeeperClusterProps): Tables {
    return new Tables(this, 'Tables', {
      capacity: props.capacity ?? { kind: 'onDemand' },
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
    if (props.instanceIdentityCertificateFile !== undefined) features.add('instanceEnrolment');
    return {
      clusterId: this.clusterId,
      policy: this.policy,
      metricsNamespace: metricsNamespaceOf(this.clusterId),
      tables: this.tables,
      eventBus: new EventBus(this, 'Events', { clusterId: this.clusterId }),
      deadLetters: deadLetterQueue(this, 'DeadLetters'),
      logRetention: props.logRetention ?? RetentionDays.ONE_MONTH,
      features,
    };
  }

  /** The functions that answer requests, and the HTTP API in front of them. */
  #createServing(
    props: NodekeeperClusterProps,
    surroundings: FunctionSurroundings,
    variables: Variables,
  ): { readonly frontDoor: FrontDoor; readonly functions: readonly [FunctionName, IFunction][] } {
    const heartbeat = new ManifestFunction(this, { manifest: heartbeatManifest, surroundings, variables });
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
        ACCESS_ENTRIES: JSON.stringify(accessEntriesOf(props)),
        ...auditLog.environment,
        ...(watch === undefined ? {} : { WATCH_URL: watch.url }),
      },
      // It writes no metrics of its own, and its environment is nearly full.
      environment: { POWERTOOLS_METRICS_NAMESPACE: 'Nodekeeper' },
      bundle: {
        splitsOnDemandImports: true,
        ...(certificate === undefined
          ? {}
          : { files: { [INSTANCE_IDENTITY_KEY_FILE]: readInstanceIdentityKey(certificate) } }),
      },
    });
    api.allow(['logs:PutLogEvents'], [auditLog.streamArn]);
    const frontDoor = new FrontDoor(this, 'FrontDoor', {
      clusterId: this.clusterId,
      heartbeat: heartbeat.lambda,
      api: api.lambda,
      ...requestLimits(props, this.policy),
      customDomain: props.customDomain,
    });
    const functions: [FunctionName, IFunction][] = [
      ['heartbeat', heartbeat.lambda],
      ['api', api.lambda],
    ];
    return { frontDoor, functions };
  }

  /** The functions that streams, ticks and events call: all that the list has besides those that answer requests. */
  #createControllers(surroundings: FunctionSurroundings, variables: Variables): readonly [FunctionName, IFunction][] {
    const known: Variables = { ...variables, PROBE_URL: this.endpoint };
    return functionList
      .filter(({ triggers }) => !triggers.some(({ kind }) => kind === 'http' || kind === 'functionUrl'))
      .map((manifest) => [
        manifest.name,
        new ManifestFunction(this, { manifest, surroundings, variables: known }).lambda,
      ]);
  }

  #createAlarms(
    props: NodekeeperClusterProps,
    of: {
      readonly surroundings: FunctionSurroundings;
      readonly functions: ReadonlyMap<FunctionName, IFunction>;
      readonly apiId: string;
    },
  ): Dashboard {
    const { metricsNamespace, deadLetters, tables } = of.surroundings;
    const alarms = new Alarms(this, 'Alarms', {
      metricsNamespace,
      policy: this.policy,
      apiId: of.apiId,
      tables,
      functions: of.functions,
      clusterId: this.clusterId,
      deadLetters,
      alarmTopicArn: alarmTopicArnOf(this, props),
      runbookBaseUrl: props.runbookBaseUrl,
    });
    return new Dashboard(this, 'Dashboard', {
      clusterId: this.clusterId,
      metricsNamespace,
      heartbeat: functionOf(of.functions, 'heartbeat'),
      policy: this.policy,
      alarms,
    });
  }

  #createOutputs(of: {
    readonly surroundings: FunctionSurroundings;
    readonly dashboard: Dashboard;
    readonly frontDoor: FrontDoor;
  }): void {
    output(this, 'EventBusName', of.surroundings.eventBus.busName, 'Where the cluster tells its events (docs/events)');
    output(this, 'DashboardUrl', of.dashboard.url, 'The cluster at a glance');
    output(this, 'Endpoint', this.endpoint, 'Server URL for kubeconfigs and agents');
    output(this, 'ClusterId', this.clusterId, 'Name of this cluster');
    const { region, stackName } = Stack.of(this);
    output(this, 'Region', region, 'Where it runs');
    const command = `npx nodekeeper kubeconfig --stack ${stackName} --region ${region}`;
    output(this, 'KubeconfigCommand', command, 'Writes a kubeconfig for people with AWS credentials');
    const { domainTarget } = of.frontDoor;
    if (domainTarget !== undefined) {
      output(this, 'DomainTarget', domainTarget, 'What the DNS record of the custom domain points to');
    }
  }
}

type Variables = ManifestFunctionProps['variables'];

/** Those that many functions read. */
const variablesOf = ({ health, objects, control }: Tables, policy: Policy): Variables => ({
  NODEKEEPER_POLICY: JSON.stringify(policy),
  HEALTH_TABLE: health.tableName,
  OBJECTS_TABLE: objects.tableName,
  CONTROL_TABLE: control.tableName,
});

function staticTokensParameter(scope: Construct): CfnParameter {
  const parameter = new CfnParameter(scope, 'StaticTokens', {
    type: 'String',
    default: '[]',
    noEcho: true,
    // An environment has at most 4 KB; the policy takes about one.
    maxLength: 640,
    description:
      'Sign-in without IAM, for emergencies: JSON list of {"sha256": hex of the token\'s SHA-256, "user": name, ' +
      '"groups": [names]}. Only hashes are stored.',
  });
  parameter.overrideLogicalId('StaticTokens');
  return parameter;
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
