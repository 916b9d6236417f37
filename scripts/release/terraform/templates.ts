/**
 * The templates of the Terraform module: one for each set of options that changes which resources there are. What only
 * changes values is a parameter. The code of the functions is where the parameters say: neither the CDK nor its
 * bootstrap stack is needed.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, CfnParameter, DefaultStackSynthesizer, type IStackSynthesizer, Stack } from 'aws-cdk-lib';
import { Encryption } from '../../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../../cdk/lib/cluster-props.ts';
import {
  MARK_CONCURRENCY,
  MARK_CONCURRENCY_MIN,
  MARK_SHARE,
  reservedConcurrencyOf,
  UNRESERVED_MIN,
} from '../../../cdk/lib/concurrency.ts';
import { handlerBundles } from '../../../cdk/lib/handler-bundles.ts';
import { NodekeeperCluster } from '../../../cdk/lib/nodekeeper-cluster.ts';
import { type FunctionName, functionList } from '../../../functions/function-list.ts';
import { defined } from '../../../shared/defined.ts';
import { defaultPolicy } from '../../../shared/fleet/policy.ts';
import { ROOT } from '../manifest.ts';
import { policyInputs } from './policy-inputs.ts';

/** The function that reads the access entries, from a file beside its code. The module adds it. */
const ACCESS_ENTRIES_READER: FunctionName = 'api';

export interface OptionSet {
  readonly nodesMax: number;
  /** Whether the functions call AWS from subnets of the user. Watches are then answered by polls (docs/network.md). */
  readonly network: boolean;
  /** Whether a key of the account encrypts. The stack creates it. */
  readonly customerKey: boolean;
  /** Whether a topic is notified of alarms. */
  readonly alarmTopic: boolean;
}

const YES_NO = [false, true];
const NODES_MAX = [1_000, 10_000];
export const optionSets: readonly OptionSet[] = NODES_MAX.flatMap((nodesMax) =>
  YES_NO.flatMap((network) =>
    YES_NO.flatMap((customerKey) => YES_NO.map((alarmTopic) => ({ nodesMax, network, customerKey, alarmTopic }))),
  ),
);

/** Name of the file of a set. main.tf makes it of its variables. */
export const templateName = ({ nodesMax, network, customerKey, alarmTopic }: OptionSet): string =>
  `${nodesMax}-${network ? 'vpc' : 'public'}-${customerKey ? 'key' : 'aws'}-${alarmTopic ? 'topic' : 'silent'}.json`;

/** Props with these values, or with tokens of parameters in their place. */
export interface OptionValues {
  readonly clusterId: string;
  readonly subnetIds: string[];
  readonly securityGroupIds: string[];
  readonly alarmTopicArn: string;
  readonly policy?: NodekeeperClusterProps['policy'];
  readonly accountConcurrency?: number;
  readonly permissionsBoundaryArn?: string;
}

/** With private subnets a watch is answered by polls. */
const policyOfSet = ({ network }: OptionSet): NodekeeperClusterProps['policy'] =>
  network ? { watchMode: 'longPoll' } : {};

export const propsOf = (set: OptionSet, values: OptionValues): NodekeeperClusterProps => ({
  outputPrefix: '',
  clusterId: values.clusterId,
  nodesMax: set.nodesMax,
  policy: { ...policyOfSet(set), ...values.policy },
  ...defined({ accountConcurrency: values.accountConcurrency, permissionsBoundaryArn: values.permissionsBoundaryArn }),
  ...(set.network ? { network: { subnetIds: values.subnetIds, securityGroupIds: values.securityGroupIds } } : {}),
  ...(set.customerKey ? { encryption: Encryption.customerManaged() } : {}),
  ...(set.alarmTopic ? { alarmTopicArn: values.alarmTopicArn } : {}),
});

export interface Template {
  readonly Parameters: Readonly<Record<string, { readonly Type: string }>>;
  readonly Resources: Readonly<Record<string, TemplateResource>>;
  readonly Outputs: Readonly<Record<string, { readonly Description?: string }>>;
  readonly [section: string]: unknown;
}
export interface TemplateResource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly Metadata?: Readonly<Record<string, unknown>>;
}

/** The CDK's own rules, which test/cdk applies to every pair of options: four fifths of a synthesis. */
const VALIDATION = 'CDK_VALIDATION';

/** @returns the template of a set, as CloudFormation reads it */
export function templateOf(set: OptionSet): Template {
  const outdir = mkdtempSync(join(tmpdir(), 'nodekeeper-terraform-'));
  const before = process.env[VALIDATION];
  process.env[VALIDATION] = 'false';
  try {
    const app = new App({ analyticsReporting: false, outdir, context: contextOfProject() });
    const stack = new Stack(app, 'Nodekeeper', {
      description: 'The Kubernetes node controller without a control plane',
      synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }) as IStackSynthesizer,
    });
    new NodekeeperCluster(stack, 'Cluster', propsOf(set, parametersOf(stack, set)));
    const { template } = app.synth().getStackByName('Nodekeeper');
    return withCodeOfModule(withInputs(template as Template));
  } finally {
    rmSync(outdir, { recursive: true, force: true });
    if (before === undefined) delete process.env[VALIDATION];
    else process.env[VALIDATION] = before;
  }
}

/** The feature flags of the CDK in cdk.json. Handlers are not bundled here. */
function contextOfProject(): Record<string, unknown> {
  const { context } = JSON.parse(readFileSync(join(ROOT, 'cdk.json'), 'utf8')) as { context: Record<string, unknown> };
  return { ...context, 'aws:cdk:bundling-stacks': [] };
}

function parametersOf(stack: Stack, set: OptionSet): OptionValues {
  const text = (id: string, description: string, allowedPattern?: string): CfnParameter =>
    new CfnParameter(stack, id, { description, ...(allowedPattern === undefined ? {} : { allowedPattern }) });
  const list = (id: string, type: string, description: string): string[] =>
    new CfnParameter(stack, id, { type, description }).valueAsList;
  text('CodeBucket', 'Bucket of the code of the functions');
  text('CodePrefix', 'Prefix of its keys');
  text('AccessEntriesHash', 'SHA-256 of the access entries, part of the key of the code that contains them');
  text(INPUTS.policy, 'Policy fields as JSON');
  text(INPUTS.detectionSeconds, 'Grace period and one tick, for the dashboard', '[0-9]+');
  text(INPUTS.reserveExecutions, 'Whether executions are reserved for functions', 'true|false');
  text(INPUTS.markConcurrencyMax, 'Executions that mark nodes at once', '[0-9]+');
  text(INPUTS.permissionsBoundaryArn, 'IAM policy that limits every role; empty: none');
  return {
    clusterId: text('ClusterId', 'Name of the cluster', '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?').valueAsString,
    subnetIds: set.network ? list('SubnetIds', 'List<AWS::EC2::Subnet::Id>', 'Subnets of the functions') : [],
    securityGroupIds: set.network
      ? list('SecurityGroupIds', 'List<AWS::EC2::SecurityGroup::Id>', 'Security groups of the functions')
      : [],
    alarmTopicArn: set.alarmTopic ? text('AlarmTopicArn', 'Topic that is notified of alarms').valueAsString : '',
  };
}

/** Parameters of what only changes values, which the CDK computes. */
const INPUTS = {
  policy: 'Policy',
  detectionSeconds: 'DetectionSeconds',
  reserveExecutions: 'ReserveExecutions',
  markConcurrencyMax: 'MarkConcurrencyMax',
  permissionsBoundaryArn: 'PermissionsBoundaryArn',
} as const;
const RESERVES = 'ReservesExecutions';
const HAS_BOUNDARY = 'HasPermissionsBoundary';

const refTo = (name: string): object => ({ Ref: name });
const onlyIf = (condition: string, value: unknown): object => ({
  'Fn::If': [condition, value, refTo('AWS::NoValue')],
});

/** With parameters in place of the values that follow from them. @throws Error when one is not where it was */
function withInputs(template: Template): Template {
  const found = new Set<string>();
  const seen = <T>(input: keyof typeof INPUTS, value: T): T => {
    found.add(input);
    return value;
  };
  const propertiesOf = ({ Type, Properties }: TemplateResource): object => {
    if (Type === 'AWS::IAM::Role') {
      const boundary = onlyIf(HAS_BOUNDARY, refTo(INPUTS.permissionsBoundaryArn));
      return seen('permissionsBoundaryArn', { PermissionsBoundary: boundary });
    }
    if (Type === 'AWS::Lambda::EventSourceMapping' && Properties['ScalingConfig'] !== undefined) {
      const MaximumConcurrency = refTo(INPUTS.markConcurrencyMax);
      return seen('markConcurrencyMax', { ScalingConfig: { MaximumConcurrency } });
    }
    if (Type === 'AWS::CloudWatch::Dashboard') {
      const body = withDetectionSeconds(Properties['DashboardBody']);
      return seen('detectionSeconds', { DashboardBody: body });
    }
    if (Type !== 'AWS::Lambda::Function') return {};
    const { Environment, ReservedConcurrentExecutions: reserved } = Properties;
    const { Variables } = Environment as { readonly Variables: Readonly<Record<string, unknown>> };
    return {
      ...(Object.hasOwn(Variables, 'NODEKEEPER_POLICY') &&
        seen('policy', { Environment: { Variables: { ...Variables, NODEKEEPER_POLICY: refTo(INPUTS.policy) } } })),
      ...(reserved !== undefined &&
        seen('reserveExecutions', { ReservedConcurrentExecutions: onlyIf(RESERVES, reserved) })),
    };
  };
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    return [id, { ...resource, Properties: { ...resource.Properties, ...propertiesOf(resource) } }] as const;
  });
  const missing = Object.keys(INPUTS).filter((input) => !found.has(input));
  if (missing.length > 0) throw new Error(`the template has no place for ${missing.join(', ')}`);
  const conditions = {
    [RESERVES]: { 'Fn::Equals': [refTo(INPUTS.reserveExecutions), 'true'] },
    [HAS_BOUNDARY]: { 'Fn::Not': [{ 'Fn::Equals': [refTo(INPUTS.permissionsBoundaryArn), ''] }] },
  };
  const { Conditions: others } = template as { readonly Conditions?: object };
  return { ...template, Conditions: { ...others, ...conditions }, Resources: Object.fromEntries(resources) };
}

const DETECTION_SECONDS = defaultPolicy.nodeMonitorGracePeriodSeconds + defaultPolicy.nodeMonitorPeriodSeconds;

/** The dashboard says it in the text of an annotation, and as its place. */
function withDetectionSeconds(body: unknown): object {
  const seconds = DETECTION_SECONDS;
  const places = new RegExp(`(?<="value":)${seconds}(?=,"label":"grace period)|(?<=one tick: )${seconds}(?= s)`, 'g');
  const [separator, parts] = (body as { readonly 'Fn::Join': readonly [string, readonly unknown[]] })['Fn::Join'];
  const split = parts.flatMap((part) => {
    if (typeof part !== 'string') return [part];
    return part.split(places).flatMap((text, index) => (index === 0 ? [text] : [refTo(INPUTS.detectionSeconds), text]));
  });
  if (split.length !== parts.length + 4) throw new Error('the dashboard does not say the time of detection twice');
  return { 'Fn::Join': [separator, split] };
}

/** Limit of an account from which on it reserves executions. */
const reservingConcurrency = (nodesMax: number): number =>
  Object.values(reservedConcurrencyOf({ nodesMax }, defaultPolicy)).reduce((sum, count) => sum + count, UNRESERVED_MIN);

/** What main.tf needs for the values of parameters. */
export const moduleSettings = () => ({
  policyInputs: policyInputs(),
  detectionSeconds: DETECTION_SECONDS,
  gracePeriodSeconds: defaultPolicy.nodeMonitorGracePeriodSeconds,
  reservingConcurrency: Object.fromEntries(NODES_MAX.map((nodesMax) => [nodesMax, reservingConcurrency(nodesMax)])),
  markConcurrency: { share: MARK_SHARE, least: MARK_CONCURRENCY_MIN, most: MARK_CONCURRENCY },
});

/** The files of a function's bundle, by name. */
export function codeOf(name: FunctionName): ReadonlyMap<string, Uint8Array> {
  const folder = `/${name}/`;
  const files = handlerBundles(name).flatMap(({ path, contents }) => {
    const at = path.lastIndexOf(folder);
    return at === -1 ? [] : [[path.slice(at + folder.length), contents] as const];
  });
  return new Map(files.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Other code has another key: Lambda updates a function when its key changes. */
export function codeHash(name: FunctionName): string {
  const hash = createHash('sha256');
  for (const [file, bytes] of codeOf(name)) hash.update(`${file} ${bytes.length}\n`).update(bytes);
  return hash.digest('hex');
}

/** A parameter in `Fn::Sub`. */
const parameter = (name: string): string => `\${${name}}`;

/** Key of a function's code. */
const codeKey = (name: FunctionName, hash: string): string => {
  const entries = name === ACCESS_ENTRIES_READER ? `-${parameter('AccessEntriesHash')}` : '';
  return `${parameter('CodePrefix')}${name}-${hash}${entries}.zip`;
};

function withCodeOfModule(template: Template): Template {
  const hashes = new Map(functionList.map(({ name }) => [name as string, codeHash(name)]));
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    if (resource.Type !== 'AWS::Lambda::Function') return [id, resource] as const;
    const name = String(resource.Metadata?.['nodekeeper:function']);
    const hash = hashes.get(name);
    if (hash === undefined) throw new Error(`${id} has the function ${name}, which is not listed`);
    const Code = { S3Bucket: { Ref: 'CodeBucket' }, S3Key: { 'Fn::Sub': codeKey(name as FunctionName, hash) } };
    return [id, { ...resource, Properties: { ...resource.Properties, Code } }] as const;
  });
  return { ...template, Resources: Object.fromEntries(resources) };
}
