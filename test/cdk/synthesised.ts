import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { nodekeeperApp } from '../../cdk/lib/nodekeeper-app.ts';

export interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
  readonly Metadata?: Record<string, unknown>;
  readonly DeletionPolicy?: string;
}
export type Resources = Readonly<Record<string, Resource>>;

const cdkContext = (
  JSON.parse(readFileSync(join(repositoryRoot, 'cdk.json'), 'utf8')) as { context: Record<string, unknown> }
).context;

/** The app with the feature flags of cdk.json, as the CLI sets them, but without bundling any handler. */
export function unbundledApp(cluster: NodekeeperClusterProps = {}, context: Record<string, unknown> = {}) {
  return nodekeeperApp({ cluster, app: { context: { ...cdkContext, 'aws:cdk:bundling-stacks': [], ...context } } });
}

/** A template that the rules of the CDK and of cdk-nag accept. */
export const synthesiseChecked = (cluster: NodekeeperClusterProps = {}): Template =>
  Template.fromStack(unbundledApp(cluster).stack);

/**
 * Without these rules, which are two thirds of a synthesis: synth.test.ts, options.test.ts and, for every pair of
 * options, resource-schemas.test.ts apply them.
 */
export function synthesise(cluster: NodekeeperClusterProps = {}, context: Record<string, unknown> = {}): Template {
  if ([cluster, context].some((each) => Object.keys(each).length > 0)) return unchecked(cluster, context);
  plain ??= JSON.stringify(unchecked({}, {}).toJSON());
  return Template.fromJSON(JSON.parse(plain) as Record<string, unknown>);
}

/** The template without any setting, as JSON: the files of a worker share it. */
let plain: string | undefined;

const UNCHECKED = { CDK_VALIDATION: 'false', NODEKEEPER_CDK_NAG: 'false' };

function unchecked(cluster: NodekeeperClusterProps, context: Record<string, unknown>): Template {
  const before = Object.keys(UNCHECKED).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, UNCHECKED);
  try {
    return Template.fromStack(unbundledApp(cluster, context).stack);
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

export const resourcesOf = (template: Template): Resources => template.toJSON()['Resources'] as Resources;

export const ofType = (template: Template, type: string): readonly [string, Resource][] =>
  Object.entries(resourcesOf(template)).filter(([, resource]) => resource.Type === type);

/** Role of a function, as local mode reads it. */
export const functionRole = (resource: Resource): string => String(resource.Metadata?.['nodekeeper:function']);

/** Logical id by role. */
export const functionIds = (template: Template): ReadonlyMap<string, string> =>
  new Map(ofType(template, 'AWS::Lambda::Function').map(([id, resource]) => [functionRole(resource), id]));

interface Statement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

const listOf = <Value>(value: Value | Value[]): Value[] => (Array.isArray(value) ? value : [value]);

/** `{ Fn::GetAtt: [id, attribute] }` and joins of it as `<id.attribute>…`, short enough for a test. */
export function shortArn(value: unknown): string {
  if (typeof value === 'string') return value;
  const [name, argument] = Object.entries(value as Record<string, unknown>)[0] ?? [];
  if (name === 'Fn::GetAtt') return `<${(argument as string[]).join('.')}>`;
  if (name === 'Ref') return `<${String(argument)}>`;
  if (name === 'Fn::Join') return (argument as [string, unknown[]])[1].map(shortArn).join('');
  throw new Error(`not an ARN: ${JSON.stringify(value)}`);
}

/** ` [partition]` for each partition that a statement is limited to. */
function partitionsOf({ Condition: condition = {} }: Statement): readonly string[] {
  const keys = condition['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'];
  if (keys === undefined) return [''];
  const required = listOf(condition['Null']?.['dynamodb:LeadingKeys']).join();
  if (required !== 'false') throw new Error('allows requests without a leading key');
  return listOf(keys as string | string[]).map((key) => ` [${key}]`);
}

/**
 * Every `action on resource` that a function's role allows, with the partition that limits it. Throws on a Deny, a
 * managed policy or a shared role.
 */
export function allowedTo(template: Template, role: string): readonly string[] {
  const resources = resourcesOf(template);
  const lambda = Object.values(resources).find(
    (resource) => resource.Type === 'AWS::Lambda::Function' && functionRole(resource) === role,
  );
  const roleId = shortArn(lambda?.Properties['Role']).replace(/^<(.*)\.Arn>$/, '$1');
  if (resources[roleId]?.Properties['ManagedPolicyArns'] !== undefined) throw new Error(`${role}: managed policy`);
  if (resources[roleId]?.Properties['Policies'] !== undefined) throw new Error(`${role}: inline policy`);

  const allowed: string[] = [];
  for (const [, policy] of ofType(template, 'AWS::IAM::Policy')) {
    const roles = (policy.Properties['Roles'] as unknown[]).map(shortArn);
    if (!roles.includes(`<${roleId}>`)) continue;
    if (roles.length > 1) throw new Error(`${role}: shares its policy`);
    const { Statement: statements } = policy.Properties['PolicyDocument'] as { Statement: Statement[] };
    for (const statement of statements) {
      if (statement.Effect !== 'Allow') throw new Error(`${role}: ${statement.Effect}`);
      for (const action of listOf(statement.Action)) {
        for (const resource of listOf(statement.Resource)) {
          for (const partition of partitionsOf(statement))
            allowed.push(`${action} on ${shortArn(resource)}${partition}`);
        }
      }
    }
  }
  return allowed.sort();
}
