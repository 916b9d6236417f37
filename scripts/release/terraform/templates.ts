/**
 * The template of the Terraform module: one for all its inputs. What changes resources is an option (options.ts), what
 * only changes values is a parameter. The code of the functions is where the parameters say: neither the CDK nor its
 * bootstrap stack is needed.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, CfnParameter, DefaultStackSynthesizer, type IStackSynthesizer, Stack } from 'aws-cdk-lib';
import { handlerBundles } from '../../../cdk/lib/handler-bundles.ts';
import { constructIdOf } from '../../../cdk/lib/manifest-function.ts';
import { NodekeeperCluster } from '../../../cdk/lib/nodekeeper-cluster.ts';
import { type FunctionName, functionList } from '../../../functions/function-list.ts';
import { defaultPolicy } from '../../../shared/fleet/policy.ts';
import { ROOT } from '../manifest.ts';
import { mergedTemplate, type Template, type TemplateResource } from './one-template.ts';
import { options, propsWith, valuesIn, withOptionsBelow } from './options.ts';
import { policyInputs } from './policy-inputs.ts';

/** The function that reads the access entries, from a file beside its code. The module adds it. */
const ACCESS_ENTRIES_READER: FunctionName = 'api';

/** The CDK's own rules, which test/cdk applies to every pair of options: four fifths of a synthesis. */
const VALIDATION = 'CDK_VALIDATION';

/**
 * The templates by the names of their files: what happens to the tables with the stack is an attribute, for which
 * CloudFormation has no conditions.
 */
export function templatesOfModule(): Readonly<Record<'retain' | 'destroy', Template>> {
  const found = new Set<Place>();
  const templateWith = (name?: string): Template =>
    withPlaces(synthesised(name === undefined ? [] : withOptionsBelow(name)), found);
  const names = options.map(({ name }) => name);
  const variants = options.map(({ name, over, group }) => {
    return {
      option: name,
      over: over === undefined ? 0 : names.indexOf(over) + 1,
      group,
      template: templateWith(name),
    };
  });
  const retain = withCodeOfModule(mergedTemplate(templateWith(), variants));
  const missing = PLACES.filter((place) => !found.has(place));
  if (missing.length > 0) throw new Error(`the template has no place for ${missing.join(', ')}`);
  return { retain, destroy: withTablesDeleted(retain) };
}

/** The template of a cluster with these options, with tokens in place of values. */
function synthesised(names: readonly string[]): Template {
  const outdir = mkdtempSync(join(tmpdir(), 'nodekeeper-terraform-'));
  const before = process.env[VALIDATION];
  process.env[VALIDATION] = 'false';
  try {
    const app = new App({ analyticsReporting: false, outdir, context: contextOfProject() });
    const stack = new Stack(app, 'Nodekeeper', {
      description: 'The Kubernetes node controller without a control plane',
      synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }) as IStackSynthesizer,
    });
    const clusterId = parametersOf(stack);
    new NodekeeperCluster(stack, 'Cluster', propsWith(names, clusterId, valuesIn(stack)));
    const { template } = app.synth().getStackByName('Nodekeeper');
    return template as Template;
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

/** Parameters of values that the CDK computes, or that only the module has. @returns the token of the cluster's name */
function parametersOf(stack: Stack): string {
  const text = (id: string, description: string, allowedPattern?: string): CfnParameter =>
    new CfnParameter(stack, id, { description, ...(allowedPattern === undefined ? {} : { allowedPattern }) });
  text('CodeBucket', 'Bucket of the code of the functions');
  text('CodePrefix', 'Prefix of its keys');
  text('AccessEntriesHash', 'SHA-256 of the files that the module adds to the code of api, part of its key');
  text('Policy', 'Policy fields as JSON');
  for (const place of PLACES.filter((each) => each !== 'Policy')) text(place, 'A number (main.tf)', '[0-9]+');
  for (const { name } of functionList)
    text(reservationOf(name), `Executions reserved for ${name}; empty: none`, '[0-9]*');
  return text('ClusterId', 'Name of the cluster', '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?').valueAsString;
}

/** Parameters in place of values that the CDK computes. */
const PLACES = [
  'Policy',
  'DetectionSeconds',
  'MarkConcurrencyMax',
  'RequestsPerSecondMax',
  'RequestsBurstMax',
  'RefusedPerMinute',
  'PendingPodAlarmSeconds',
  'WorkloadShortageAlarmSeconds',
  'RecoveryDays',
  'HealthReadUnits',
  'HealthReadUnitsMin',
  'HealthReadUnitsMax',
  'HealthReadUnitsWarm',
  'HealthWriteUnits',
  'HealthWriteUnitsMin',
  'HealthWriteUnitsMax',
  'HealthWriteUnitsWarm',
  'ObjectsReadUnits',
  'ObjectsReadUnitsMin',
  'ObjectsReadUnitsMax',
  'ObjectsReadUnitsWarm',
  'ObjectsWriteUnits',
  'ObjectsWriteUnitsMin',
  'ObjectsWriteUnitsMax',
  'ObjectsWriteUnitsWarm',
] as const;
type Place = (typeof PLACES)[number];

const reservationOf = (name: string): string => `Reserved${constructIdOf(name)}`;
const reserves = (name: string): string => `Reserves${constructIdOf(name)}`;
const refTo = (name: string): object => ({ Ref: name });

/** With parameters in place of the values that follow from them. Adds to `found` the places that were there. */
function withPlaces(template: Template, found: Set<Place>): Template {
  const ref = (place: Place): object => {
    found.add(place);
    return refTo(place);
  };
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    return [id, { ...resource, Properties: { ...resource.Properties, ...placesIn(id, resource, ref) } }] as const;
  });
  const conditions = functionList.map(({ name }) => {
    return [reserves(name), { 'Fn::Not': [{ 'Fn::Equals': [refTo(reservationOf(name)), ''] }] }] as const;
  });
  return {
    ...template,
    Conditions: { ...template.Conditions, ...Object.fromEntries(conditions) },
    Resources: Object.fromEntries(resources),
  };
}

function placesIn(id: string, resource: TemplateResource, ref: (place: Place) => object): object {
  const { Type, Properties, Metadata } = resource;
  switch (Type) {
    case 'AWS::Lambda::Function': {
      const { Environment } = Properties as { readonly Environment: { readonly Variables: object } };
      const variables = Object.hasOwn(Environment.Variables, 'NODEKEEPER_POLICY')
        ? { Environment: { Variables: { ...Environment.Variables, NODEKEEPER_POLICY: ref('Policy') } } }
        : {};
      const name = String(Metadata?.['nodekeeper:function']);
      const reserved = { 'Fn::If': [reserves(name), refTo(reservationOf(name)), refTo('AWS::NoValue')] };
      return { ...variables, ReservedConcurrentExecutions: reserved };
    }
    case 'AWS::Lambda::EventSourceMapping':
      if (Properties['ScalingConfig'] === undefined) return {};
      return { ScalingConfig: { MaximumConcurrency: ref('MarkConcurrencyMax') } };
    case 'AWS::CloudWatch::Dashboard':
      return { DashboardBody: withDetectionSeconds(Properties['DashboardBody'], ref('DetectionSeconds')) };
    case 'AWS::CloudWatch::Alarm':
      if (id.includes('refusedload')) return withRefusedPerMinute(Properties, ref('RefusedPerMinute'));
      if (id.includes('podspending')) return { Threshold: ref('PendingPodAlarmSeconds') };
      return id.includes('workloadshortofpods') ? { Threshold: ref('WorkloadShortageAlarmSeconds') } : {};
    case 'AWS::ApiGatewayV2::Stage': {
      const routes = Object.keys(Properties['RouteSettings'] as object);
      // CloudFormation does not read its JSON: a reference there would be text. main.tf replaces these.
      const limits = {
        ThrottlingRateLimit: '{{HeartbeatsPerSecondMax}}',
        ThrottlingBurstLimit: '{{HeartbeatsBurstMax}}',
      };
      return {
        DefaultRouteSettings: {
          ThrottlingRateLimit: ref('RequestsPerSecondMax'),
          ThrottlingBurstLimit: ref('RequestsBurstMax'),
        },
        RouteSettings: Object.fromEntries(routes.map((route) => [route, limits])),
      };
    }
    case 'AWS::DynamoDB::Table': {
      const {
        ProvisionedThroughput: provisioned,
        WarmThroughput: warm,
        PointInTimeRecoverySpecification: recovery,
      } = Properties;
      const days = (recovery as { readonly RecoveryPeriodInDays?: number }).RecoveryPeriodInDays;
      // The table `control` has no load of its own.
      const table = tableOf(id);
      return {
        ...(days !== undefined && {
          PointInTimeRecoverySpecification: { ...(recovery as object), RecoveryPeriodInDays: ref('RecoveryDays') },
        }),
        ...(table !== undefined &&
          provisioned !== undefined && {
            ProvisionedThroughput: {
              ReadCapacityUnits: ref(`${table}ReadUnits`),
              WriteCapacityUnits: ref(`${table}WriteUnits`),
            },
          }),
        ...(table !== undefined &&
          warm !== undefined && {
            WarmThroughput: {
              ReadUnitsPerSecond: ref(`${table}ReadUnitsWarm`),
              WriteUnitsPerSecond: ref(`${table}WriteUnitsWarm`),
            },
          }),
      };
    }
    case 'AWS::ApplicationAutoScaling::ScalableTarget': {
      const table = tableOf(id);
      const direction = Properties['ScalableDimension'] === 'dynamodb:table:ReadCapacityUnits' ? 'Read' : 'Write';
      if (table === undefined) throw new Error(`${id} scales no table with a load`);
      return {
        MinCapacity: ref(`${table}${direction}UnitsMin`),
        MaxCapacity: ref(`${table}${direction}UnitsMax`),
      };
    }
    default:
      return {};
  }
}

const tableOf = (id: string): 'Health' | 'Objects' | undefined =>
  (['Health', 'Objects'] as const).find((table) => id.startsWith(`ClusterTables${table}`));

const DETECTION_SECONDS = defaultPolicy.nodeMonitorGracePeriodSeconds + defaultPolicy.nodeMonitorPeriodSeconds;

/** The dashboard says it in the text of an annotation, and as its place. */
function withDetectionSeconds(body: unknown, ref: object): object {
  const seconds = DETECTION_SECONDS;
  const places = new RegExp(`(?<="value":)${seconds}(?=,"label":"grace period)|(?<=one tick: )${seconds}(?= s)`, 'g');
  const [separator, parts] = (body as { readonly 'Fn::Join': readonly [string, readonly unknown[]] })['Fn::Join'];
  const split = parts.flatMap((part) => {
    if (typeof part !== 'string') return [part];
    return part.split(places).flatMap((text, index) => (index === 0 ? [text] : [ref, text]));
  });
  if (split.length !== parts.length + 4) throw new Error('the dashboard does not say the time of detection twice');
  return { 'Fn::Join': [separator, split] };
}

/** The threshold of the alarm `refused-load` is in its description too, which an address of the runbooks splits. */
function withRefusedPerMinute(
  { AlarmDescription: description, Threshold }: object & Record<string, unknown>,
  ref: object,
) {
  const parts =
    typeof description === 'string'
      ? [description]
      : (description as { 'Fn::Join': [string, unknown[]] })['Fn::Join'][1];
  const [first, ...others] = parts;
  const words = String(first).split(` ${Threshold} `);
  if (words.length !== 2) throw new Error('the alarm refused-load does not say its threshold');
  const [before, after] = words;
  return { Threshold: ref, AlarmDescription: { 'Fn::Join': ['', [`${before} `, ref, ` ${after}`, ...others]] } };
}

function withTablesDeleted(template: Template): Template {
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    if (resource.Type !== 'AWS::DynamoDB::Table') return [id, resource] as const;
    return [id, { ...resource, UpdateReplacePolicy: 'Delete', DeletionPolicy: 'Delete' }] as const;
  });
  return { ...template, Resources: Object.fromEntries(resources) };
}

/** What main.tf cannot know by itself. */
export const moduleSettings = () => ({
  policyInputs: policyInputs(),
  // Fields with a place in the template.
  policyDefaults: {
    nodeMonitorPeriodSeconds: defaultPolicy.nodeMonitorPeriodSeconds,
    nodeMonitorGracePeriodSeconds: defaultPolicy.nodeMonitorGracePeriodSeconds,
    pendingPodAlarmSeconds: defaultPolicy.pendingPodAlarmSeconds,
    workloadShortageAlarmSeconds: defaultPolicy.workloadShortageAlarmSeconds,
  },
  reservations: Object.fromEntries(functionList.map(({ name }) => [reservationOf(name), name])),
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
