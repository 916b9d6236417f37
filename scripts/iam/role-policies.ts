/** The permissions of the functions' roles, from a synthesised template. */
import { localResolver } from '../../aws-local/assembly/plan.ts';
import { isObject, type Template } from '../../aws-local/assembly/template.ts';

/** Values a condition key may have, by operator and key. */
export type Conditions = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

export interface Statement {
  readonly effect: 'Allow' | 'Deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: Conditions;
}

/** A policy that cannot be read in full must not count as understood. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
}

const POLICY = 'AWS::IAM::Policy';
const UNREAD_TYPES = ['AWS::IAM::ManagedPolicy', 'AWS::IAM::RolePolicy'];
const STATEMENT_FIELDS = ['Effect', 'Action', 'Resource', 'Condition', 'Sid'];

/**
 * Statements by the name of the function (POWERTOOLS_SERVICE_NAME), with the names and ARNs of local mode.
 *
 * @throws PolicyError for unsupported parts: managed policies, NotAction, principals …
 */
export function rolePolicies(
  assembly: { readonly stackName: string; readonly template: Template },
  place: { readonly region: string; readonly accountId: string },
): ReadonlyMap<string, readonly Statement[]> {
  const { Resources: resources } = assembly.template;
  const resolver = localResolver(assembly, { ...place, apiUrl: 'https://127.0.0.1', parameters: {} });
  const resourcesOf = (type: string) =>
    Object.entries(resources).filter(([id, resource]) => resource.Type === type && resolver.included(id));
  for (const type of UNREAD_TYPES) {
    for (const [id] of resourcesOf(type)) throw new PolicyError(`${id}: ${type} is not read here`);
  }

  const ofRole = new Map<string, Statement[]>();
  for (const [id] of resourcesOf(POLICY)) {
    const { Roles: roles, PolicyDocument: document } = resolver.properties(id);
    for (const role of listOf(roles)) {
      ofRole.set(String(role), [...(ofRole.get(String(role)) ?? []), ...statementsOf(document, id)]);
    }
  }
  const functions = new Map<string, readonly Statement[]>();
  for (const [id, { Properties: properties = {} }] of resourcesOf('AWS::Lambda::Function')) {
    const arn = String(resolver.value(properties['Role'], `${id}.Role`));
    const roleName = arn.slice(arn.indexOf('/') + 1);
    const roleId = resourcesOf('AWS::IAM::Role').find(([each]) => resolver.value({ Ref: each }, id) === roleName)?.[0];
    if (roleId === undefined) throw new PolicyError(`${id}: its role ${arn} is not in the template`);
    const role = resources[roleId]?.Properties ?? {};
    if (listOf(role['ManagedPolicyArns'] ?? []).length > 0) {
      throw new PolicyError(`${roleId}: managed policies are not read here`);
    }
    const inline = listOf(resolver.value(role['Policies'] ?? [], roleId)).flatMap((policy) =>
      statementsOf(isObject(policy) ? policy['PolicyDocument'] : undefined, roleId),
    );
    functions.set(serviceName(properties) ?? id, [...(ofRole.get(roleName) ?? []), ...inline]);
  }
  return functions;
}

function serviceName(properties: Readonly<Record<string, unknown>>): string | undefined {
  const environment = properties['Environment'];
  const variables = isObject(environment) ? environment['Variables'] : undefined;
  const name = isObject(variables) ? variables['POWERTOOLS_SERVICE_NAME'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

function statementsOf(document: unknown, where: string): Statement[] {
  if (!isObject(document)) throw new PolicyError(`${where}: no policy document`);
  return listOf(document['Statement']).map((statement) => {
    if (!isObject(statement)) throw new PolicyError(`${where}: a statement is no object`);
    const unread = Object.keys(statement).find((field) => !STATEMENT_FIELDS.includes(field));
    if (unread !== undefined) throw new PolicyError(`${where}: ${unread} is not read here`);
    const { Effect: effect, Action: actions, Resource: on, Condition: conditions = {} } = statement;
    if (effect !== 'Allow' && effect !== 'Deny') throw new PolicyError(`${where}: effect ${String(effect)}`);
    if (!isObject(conditions)) throw new PolicyError(`${where}: conditions are no object`);
    return {
      effect,
      actions: listOf(actions).map(String),
      resources: listOf(on).map(String),
      conditions: Object.fromEntries(
        Object.entries(conditions).map(([operator, keys]) => [
          operator,
          Object.fromEntries(
            Object.entries(isObject(keys) ? keys : {}).map(([key, values]) => [key, listOf(values).map(String)]),
          ),
        ]),
      ),
    };
  });
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);
