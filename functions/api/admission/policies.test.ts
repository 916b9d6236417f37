import { describe, expect, it, vi } from 'vitest';
import { admissionPolicies } from '../../../shared/admission/policy-memory.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { type ApiInMemory, apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../../../test/support/custom-definition.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const POLICIES = `${GROUP}/validatingadmissionpolicies`;
const BINDINGS = `${GROUP}/validatingadmissionpolicybindings`;
const MUTATING = `${GROUP}/mutatingadmissionpolicies`;
const MUTATING_BINDINGS = `${GROUP}/mutatingadmissionpolicybindings`;
const MAPS = '/api/v1/namespaces/default/configmaps';

const rule = (operations: string[], resources: string[], apiGroups = ['']) => ({
  operations,
  apiGroups,
  apiVersions: ['*'],
  resources,
});
const OF_MAPS = { resourceRules: [rule(['CREATE', 'UPDATE'], ['configmaps'])] };

const policy = (name: string, spec: object) => ({ metadata: { name }, spec: { matchConstraints: OF_MAPS, ...spec } });
const binding = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { policyName: name, validationActions: ['Deny'], ...spec },
});

async function created(api: ApiInMemory, path: string, body: object) {
  const answer = await api.send('POST', path, { body });
  expect([answer.code, answer.body.message]).toEqual([201, undefined]);
  return answer;
}

async function withPolicy(spec: object, ofBinding: object = {}): Promise<ApiInMemory> {
  const api = apiInMemory();
  await created(api, POLICIES, policy('p', spec));
  await created(api, BINDINGS, binding('p', ofBinding));
  return api;
}

const map = (name: string, data: Record<string, string> = {}, labels?: Record<string, string>) => ({
  metadata: { name, ...(labels === undefined ? {} : { labels }) },
  data,
});

const put = async (api: ApiInMemory, body: object, query = '') => {
  const { code, body: answer, headers } = await api.send('POST', `${MAPS}${query}`, { body });
  return { code, message: answer.message, reason: answer.reason, warning: headers['warning'], body: answer };
};

describe('the status of a ValidatingAdmissionPolicy', () => {
  const of = (group: string, resources: string[], apiVersions = ['v1']) => ({
    operations: ['CREATE'],
    apiGroups: [group],
    apiVersions,
    resources,
  });
  const statusOf = async (api: ApiInMemory, spec: object) => {
    await api.send('DELETE', `${POLICIES}/p`);
    await created(api, POLICIES, policy('p', spec));
    return (await api.send('GET', `${POLICIES}/p`)).body.status;
  };
  const warningsOf = async (api: ApiInMemory, spec: object) =>
    (await statusOf(api, spec)).typeChecking.expressionWarnings;
  const checked = (resourceRules: object[], expression: string, more: object = {}) => ({
    matchConstraints: { resourceRules },
    validations: [{ expression, ...more }],
  });
  const APPS = of('apps', ['deployments']);

  it.each<[string, object]>([
    ['what the schema has', checked([APPS], 'object.spec.replicas <= 5 && oldObject == null')],
    ['names that are reserved in other places', checked([APPS], "object.metadata.namespace == 'a'")],
    ['maps', checked([of('', ['configmaps'])], "object.data.level != 'high' && object.data['x.y'] == 'z'")],
    [
      'values that are seen as texts or numbers',
      checked(
        [APPS],
        "object.spec.template.spec.containers.all(c, quantity(c.resources.limits.cpu).isLessThan(quantity('2'))) && timestamp(object.metadata.creationTimestamp) > timestamp('2020-01-01T00:00:00Z') && string(object.spec.strategy.rollingUpdate.maxSurge) == '1'",
      ),
    ],
    ['kinds of all versions', checked([of('apps', ['deployments'], ['*'])], 'object.foo == 1')],
    ['kinds without a schema', checked([of('apiregistration.k8s.io', ['apiservices'])], 'object.foo == 1')],
    ['kinds that are not served', checked([of('other.example.com', ['things'])], 'object.foo == 1')],
    ['subresources', checked([of('apps', ['deployments/scale', '*'])], 'object.foo == 1')],
    [
      'a struct that contains itself',
      checked([of('apiextensions.k8s.io', ['customresourcedefinitions'])], 'has(object.spec)'),
    ],
  ])('warns of nothing in %s', async (_what, spec) => {
    expect(await statusOf(apiInMemory(), spec)).toEqual({ observedGeneration: 1, typeChecking: {} });
  });

  it('warns of what the schema of each kind lacks, in the order of the expressions', async () => {
    const rules = [of('apps', ['statefulsets', 'deployments']), of('', ['pods'])];
    const spec = checked(rules, 'object.spec.replicas > 1', { messageExpression: "'a' + object.spec.nodeName" });
    const issue = (kind: string, field: string, source: string): string => {
      const at = source.indexOf(`.${field}`);
      return `${kind}: ERROR: <input>:1:${at + 1}: undefined field '${field}'\n | ${source}\n | ${'.'.repeat(at)}^\n`;
    };
    expect(await warningsOf(apiInMemory(), spec)).toEqual([
      {
        fieldRef: 'spec.validations[0].expression',
        warning: issue('/v1, Kind=Pod', 'replicas', 'object.spec.replicas > 1'),
      },
      {
        fieldRef: 'spec.validations[0].messageExpression',
        warning: ['Deployment', 'StatefulSet']
          .map((kind) => issue(`apps/v1, Kind=${kind}`, 'nodeName', "'a' + object.spec.nodeName"))
          .join('\n'),
      },
    ]);
  });

  it('warns of types, of variables and parameters by their types, and not of the type of a result', async () => {
    const api = apiInMemory();
    const of2 = async (expression: string, more: object = {}) =>
      ((await warningsOf(api, { ...checked([APPS], expression), ...more })) ?? []).map(
        ({ warning }: { warning: string }) => warning.split('\n')[0],
      );
    expect(await of2("object.spec.replicas == 'x'")).toEqual([
      "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_==_' applied to '(int, string)'",
    ]);
    const variables = [{ name: 'n', expression: 'object.spec.replicas' }];
    expect(await of2('variables.n.size() > 1', { variables })).toEqual([
      "apps/v1, Kind=Deployment: ERROR: <input>:1:17: found no matching overload for 'size' applied to 'int.()'",
    ]);
    const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
    expect(await of2('params.spec == object.spec', { paramKind })).toEqual([
      "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'spec'",
    ]);
    expect(await of2('object.spec.replicas')).toEqual([]);
  });

  it('is of a custom kind too, once its definition is there and the spec changes', async () => {
    const api = apiInMemory();
    const widgets = of('example.com', ['widgets']);
    const spec = checked([widgets], 'object.spec.size > 1 && object.spec.weight > 1 && object.spec.colour == 1');
    expect(await statusOf(api, spec)).toEqual({ observedGeneration: 1, typeChecking: {} });
    await created(api, DEFINITIONS, widgetDefinition());
    const labels = { metadata: { labels: { a: 'b' } } };
    const labelled = await api.send('PATCH', `${POLICIES}/p`, { body: labels, contentType: MERGE });
    expect(labelled.body.status).toEqual({ observedGeneration: 1, typeChecking: {} });
    const body = { spec: { failurePolicy: 'Ignore' } };
    const changed = await api.send('PATCH', `${POLICIES}/p`, { body, contentType: MERGE });
    expect(changed.body.status.observedGeneration).toBe(2);
    expect(changed.body.status.typeChecking.expressionWarnings[0].warning).toMatch(
      /^example\.com\/v1, Kind=Widget: ERROR: <input>:1:36: undefined field 'weight'\n(?:.|\n)*\(string, int\)/,
    );
    const free = checked(
      [widgets],
      "object.spec.free.any.thing == 1 && object.spec.port == 80 && object.metadata.name == 'a'",
    );
    expect(await statusOf(api, free)).toEqual({ observedGeneration: 1, typeChecking: {} });
  });

  it.each([
    ['many', Array.from({ length: 1_000 }, () => ({ expression: 'object.foo == 1 && object.bar == 2' }))],
    ['long', [{ expression: `object.foo == "${'x'.repeat(97_000)}"` }]],
  ])('has warnings of a bounded length: %s', async (_what, validations) => {
    const spec = { matchConstraints: { resourceRules: [of('', ['pods', 'secrets'])] }, validations };
    const { expressionWarnings } = (await statusOf(apiInMemory(), spec)).typeChecking;
    expect(JSON.stringify(expressionWarnings).length).toBeLessThan(20_000);
    expect(expressionWarnings[0].warning).toMatch(/^\/v1, Kind=Pod: ERROR/);
  });

  it('checks ten kinds at most', async () => {
    const resources =
      'pods services secrets configmaps nodes events endpoints namespaces serviceaccounts persistentvolumes replicationcontrollers limitranges'.split(
        ' ',
      );
    const [{ warning }] = await warningsOf(apiInMemory(), checked([of('', resources)], 'object.foo == 1'));
    expect(warning.match(/undefined field 'foo'/g)).toHaveLength(10);
  });
});

describe('a ValidatingAdmissionPolicy', () => {
  const LEVEL = { validations: [{ expression: "object.data.level != 'high'", message: 'too high' }] };

  it('refuses what its expression does not hold for, with its message', async () => {
    const api = await withPolicy(LEVEL);
    expect(await put(api, map('a', { level: 'low' }))).toMatchObject({ code: 201 });
    expect(await put(api, map('b', { level: 'high' }))).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: `configmaps "b" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: too high`,
    });
    expect((await api.send('GET', `${MAPS}/b`)).code).toBe(404);
    expect(api.faults).toEqual([]);
  });

  it('is evaluated for dry runs, updates and patches, and not for other kinds', async () => {
    const api = await withPolicy(LEVEL);
    expect(await put(api, map('b', { level: 'high' }), '?dryRun=All')).toMatchObject({ code: 422 });
    await created(api, MAPS, map('a', { level: 'low' }));
    const body = { data: { level: 'high' } };
    const patched = await api.send('PATCH', `${MAPS}/a`, { body, contentType: 'application/merge-patch+json' });
    expect(patched.code).toBe(422);
    expect((await api.send('PUT', `${MAPS}/a`, { body: map('a', { level: 'high' }) })).code).toBe(422);
    await created(api, '/api/v1/namespaces/default/secrets', { metadata: { name: 's' } });
  });

  it('fails closed when its expression fails, and open with failurePolicy Ignore', async () => {
    const spec = { validations: [{ expression: 'object.data.missing > 1' }] };
    const message = `expression 'object.data.missing > 1' resulted in error: no such key: missing`;
    const closed = await withPolicy(spec);
    expect((await put(closed, map('a', { x: 'y' }))).message).toContain(message);
    const open = await withPolicy({ ...spec, failurePolicy: 'Ignore' });
    expect(await put(open, map('a', { x: 'y' }))).toMatchObject({ code: 201 });
  });

  it('warns with the action Warn', async () => {
    const api = await withPolicy(LEVEL, { validationActions: ['Warn'] });
    const answer = await put(api, map('b', { level: 'high' }));
    expect(answer.code).toBe(201);
    expect(answer.warning).toBe(
      `299 - "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': too high"`,
    );
  });

  it('has messages, reasons, variables, conditions and old objects', async () => {
    const api = await withPolicy({
      matchConditions: [
        { name: 'not-exempt', expression: "!has(object.metadata.labels) || !('exempt' in object.metadata.labels)" },
      ],
      variables: [
        { name: 'size', expression: 'size(object.data)' },
        { name: 'limit', expression: 'variables.size > 100 ? 0 : 2' },
      ],
      validations: [
        {
          expression: 'variables.size <= variables.limit',
          messageExpression: "'%d keys, at most %d'.format([variables.size, variables.limit])",
          reason: 'Forbidden',
        },
        { expression: 'oldObject == null || oldObject.data == object.data', message: 'data is immutable' },
      ],
    });
    expect(await put(api, map('a', { x: '', y: '', z: '' }))).toMatchObject({ code: 403, reason: 'Forbidden' });
    expect((await put(api, map('a', { x: '', y: '', z: '' }))).message).toContain('3 keys, at most 2');
    expect(await put(api, map('a', { x: '', y: '', z: '' }, { exempt: '' }))).toMatchObject({ code: 201 });
    await created(api, MAPS, map('b', { x: '' }));
    const changed = await api.send('PUT', `${MAPS}/b`, { body: map('b', { x: 'new' }) });
    expect(changed.body.message).toContain('data is immutable');
  });

  it('has parameters, the request, the namespace and an authorizer', async () => {
    const api = apiInMemory();
    await created(api, MAPS, map('limits', { max: '1' }));
    const spec = {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        { expression: "object.metadata.name == 'limits' || size(object.data) <= int(params.data.max)" },
        { expression: "request.operation == 'CREATE' && request.userInfo.username == 'tester'" },
        { expression: "namespaceObject.metadata.name == 'default'" },
        { expression: "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()" },
        { expression: "!authorizer.serviceAccount('default', 'none').requestResource.check('delete').allowed()" },
        { expression: "authorizer.requestResource.check('create').allowed()" },
      ],
    };
    await created(api, POLICIES, policy('p', spec));
    const paramRef = { name: 'limits', parameterNotFoundAction: 'Deny' };
    await created(api, BINDINGS, binding('p', { paramRef }));
    expect(await put(api, map('a', { x: '' }))).toMatchObject({ code: 422 });
    const withoutAccount = spec.validations.filter((_, i) => i !== 4);
    const stored = await api.send('GET', `${POLICIES}/p`);
    const body = { ...stored.body, spec: { ...stored.body.spec, validations: withoutAccount } };
    expect((await api.send('PUT', `${POLICIES}/p`, { body })).code).toBe(200);
    expect(await put(api, map('a', { x: '' }))).toMatchObject({ code: 201 });
    expect(await put(api, map('b', { x: '', y: '' }))).toMatchObject({ code: 422 });
    await api.send('DELETE', `${MAPS}/limits`);
    expect((await put(api, map('c'))).message).toContain(
      'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction',
    );
  });

  it('selects by namespace and object labels, excludes, and names', async () => {
    const api = await withPolicy({
      matchConstraints: {
        ...OF_MAPS,
        objectSelector: { matchLabels: { tier: 'a' } },
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['default'] }],
        },
        excludeResourceRules: [{ ...rule(['*'], ['configmaps']), resourceNames: ['free'] }],
      },
      validations: [{ expression: 'false' }],
    });
    expect(await put(api, map('a'))).toMatchObject({ code: 201 });
    expect(await put(api, map('b', {}, { tier: 'a' }))).toMatchObject({ code: 422 });
    expect(await put(api, map('free', {}, { tier: 'a' }))).toMatchObject({ code: 201 });
    await created(api, '/api/v1/namespaces', { metadata: { name: 'other' } });
    const other = await api.send('POST', '/api/v1/namespaces/other/configmaps', { body: map('b', {}, { tier: 'a' }) });
    expect(other.code).toBe(201);
  });

  it('is evaluated for deletions, collections and subresources', async () => {
    const api = apiInMemory();
    await created(api, MAPS, map('kept'));
    const matchConstraints = {
      resourceRules: [rule(['DELETE'], ['configmaps']), rule(['UPDATE'], ['deployments/scale'], ['apps'])],
    };
    const expression =
      "request.operation == 'DELETE' ? object == null && oldObject.metadata.name != 'kept' : object.spec.replicas < 3";
    await created(api, POLICIES, policy('p', { matchConstraints, validations: [{ expression }] }));
    await created(api, BINDINGS, binding('p'));
    expect((await api.send('DELETE', `${MAPS}/kept`)).code).toBe(422);
    expect((await api.send('DELETE', MAPS)).code).toBe(422);
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    const spec = { selector: { matchLabels: { a: 'b' } }, template };
    await created(api, deployments, { metadata: { name: 'd' }, spec });
    const scale = (replicas: number) =>
      api.send('PATCH', `${deployments}/d/scale`, {
        body: { spec: { replicas } },
        contentType: 'application/merge-patch+json',
      });
    expect((await scale(2)).code).toBe(200);
    expect((await scale(5)).code).toBe(422);
  });

  it('is refused with faults in its expressions, each with its field and place', async () => {
    const api = apiInMemory();
    const answer = await api.send('POST', POLICIES, {
      body: policy('p', {
        variables: [{ name: 'v', expression: 'object.x +' }],
        validations: [
          { expression: '1 + 1' },
          { expression: 'request.name == 1 && nope', messageExpression: 'authorizer' },
        ],
      }),
    });
    expect(answer.code).toBe(422);
    const causes = answer.body.details.causes.map(({ field }: { field: string }) => field);
    expect(causes).toEqual([
      'spec.variables[0].expression',
      'spec.validations[0].expression',
      'spec.validations[1].expression',
      'spec.validations[1].messageExpression',
    ]);
    expect(answer.body.message).toContain('must evaluate to bool');
    expect(answer.body.message).toContain(`undeclared reference to 'nope' (in container '')`);
    expect(answer.body.message).toContain(`found no matching overload for '_==_' applied to '(string, int)'`);
  });

  it('warns when it is for the renewals of node Leases, and is evaluated for no policy', async () => {
    const api = apiInMemory();
    const all = {
      matchConstraints: { resourceRules: [rule(['*'], ['*'], ['*'])] },
      validations: [{ expression: 'false' }],
    };
    const answer = await created(api, POLICIES, policy('p', all));
    expect(answer.headers['warning']).toContain('are heartbeats');
    await created(api, BINDINGS, binding('p'));
    expect((await put(api, map('a'))).code).toBe(422);
    expect((await api.send('DELETE', `${BINDINGS}/p`)).code).toBe(200);
    expect((await put(api, map('a'))).code).toBe(201);
  });

  it('ends a request that costs too much', async () => {
    const many = `[${Array.from({ length: 100 }, (_, i) => i).join(',')}]`;
    const nested = `${many}.all(a, ${many}.all(b, ${many}.all(c, ${many}.all(d, a + b + c + d < 1000))))`;
    const api = await withPolicy({ validations: [{ expression: nested }, { expression: nested }] });
    const answer = await put(api, map('a'));
    expect(answer.message).toContain('operation cancelled: actual cost limit exceeded');
  });
});

describe('a MutatingAdmissionPolicy', () => {
  async function withMutations(mutations: object[], more: object = {}): Promise<ApiInMemory> {
    const api = apiInMemory();
    await created(api, MUTATING, policy('m', { mutations, reinvocationPolicy: 'Never', ...more }));
    await created(api, MUTATING_BINDINGS, { metadata: { name: 'm' }, spec: { policyName: 'm' } });
    return api;
  }
  const apply = (expression: string) => ({ patchType: 'ApplyConfiguration', applyConfiguration: { expression } });
  const patch = (expression: string) => ({ patchType: 'JSONPatch', jsonPatch: { expression } });

  it('merges apply configurations and JSON patches, one after the other', async () => {
    const api = await withMutations([
      apply('Object{metadata: Object.metadata{labels: {"made-by": request.userInfo.username}}}'),
      patch(
        '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: string(size(object.metadata.labels))}]',
      ),
    ]);
    const { code, body } = await put(api, map('a', { x: 'y' }, { own: '1' }));
    expect(code).toBe(201);
    expect(body.metadata.labels).toEqual({ own: '1', 'made-by': 'tester', 'a/b': '2' });
    expect(body.data).toEqual({ x: 'y' });
    expect(api.faults).toEqual([]);
  });

  it('is refused when its result is not valid, or names another object', async () => {
    const invalid = await withMutations([
      patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b c"}}]'),
    ]);
    expect(await put(invalid, map('a'))).toMatchObject({ code: 422 });
    const renamed = await withMutations([patch('[JSONPatch{op: "replace", path: "/metadata/name", value: "z"}]')]);
    expect((await put(renamed, map('a'))).message).toContain(
      'must mutate neither metadata.name nor metadata.namespace',
    );
    const unknown = await withMutations([apply('Object{nope: 1}')]);
    expect((await put(unknown, map('a'))).message).toContain('invalid ApplyConfiguration: unknown field "nope"');
    const ignored = await withMutations([apply('Object{nope: 1}')], { failurePolicy: 'Ignore' });
    expect(await put(ignored, map('a'))).toMatchObject({ code: 201 });
  });

  it('is validated by policies after it', async () => {
    const api = await withMutations([patch('[JSONPatch{op: "add", path: "/data", value: {"level": "high"}}]')]);
    await created(api, POLICIES, policy('p', { validations: [{ expression: "object.data.level != 'high'" }] }));
    await created(api, BINDINGS, binding('p'));
    expect(await put(api, map('a'))).toMatchObject({ code: 422 });
  });

  it('runs again after a later policy when reinvocation is IfNeeded', async () => {
    const api = apiInMemory();
    const counting = (name: string, reinvocationPolicy: string) =>
      policy(name, {
        reinvocationPolicy,
        mutations: [
          patch(
            `[JSONPatch{op: "add", path: "/data/${name}", value: string(int(object.data.?${name}.orValue("0")) + 1)}]`,
          ),
        ],
      });
    for (const [name, reinvocation] of [
      ['a', 'IfNeeded'],
      ['b', 'Never'],
    ] as const) {
      await created(api, MUTATING, counting(name, reinvocation));
      await created(api, MUTATING_BINDINGS, { metadata: { name }, spec: { policyName: name } });
    }
    expect((await put(api, map('x', { x: '' }))).body.data).toEqual({ x: '', a: '2', b: '1' });
  });
});

it('a cluster without policies checks the logs of bindings, at most every five seconds of writes', async () => {
  const checks: (readonly string[])[] = [];
  const log = {
    async newestCommits(kinds: readonly string[]) {
      checks.push(kinds);
      return kinds.map(() => 0);
    },
  };
  const list = async () => {
    throw new Error('nothing was written');
  };
  const policies = admissionPolicies({ changes: log, list });
  for (const nowMs of [0, 1_000, 4_999, 5_000, 9_000]) {
    expect(await policies.hooks(nowMs)).toEqual({ validating: [], mutating: [] });
  }
  const bindings = ['validatingadmissionpolicybindings', 'mutatingadmissionpolicybindings'];
  expect(checks).toEqual([bindings, bindings]);
});

it('a check from before a write does not replace the one after it, and calls at once share a check', async () => {
  const gates: (() => void)[] = [];
  let [checks, stored] = [0, 0];
  const log = {
    async newestCommits(kinds: readonly string[]) {
      checks += 1;
      return kinds.map(() => stored);
    },
  };
  const list = async (kind: string) => {
    const version = stored;
    await new Promise<void>((resolve) => gates.push(resolve));
    const metadata = { name: `p${version}` };
    return { items: kind.endsWith('bindings') ? [{ metadata, spec: { policyName: metadata.name } }] : [{ metadata }] };
  };
  const policies = admissionPolicies({ changes: log, list });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const finish = async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      await turn();
      gates.shift()?.();
    }
  };
  stored = 1;
  const early = [policies.hooks(0), policies.hooks(0)];
  await turn();
  stored = 2;
  policies.changed();
  const late = policies.hooks(1);
  await turn();
  // The reads of the later call would end first.
  gates.reverse();
  await finish();
  const namesOf = async (hooks: ReturnType<typeof policies.hooks>) =>
    (await hooks).validating.map(({ policy: each }) => each.metadata.name);
  await Promise.all(early);
  expect([await namesOf(late), await namesOf(policies.hooks(2))]).toEqual([['p2'], ['p2']]);
  expect(checks).toBe(4);
});

it('a check that fails fails its calls alone', async () => {
  const down = new Error('the store is away');
  const newestCommits = vi.fn(async (kinds: readonly string[]) => kinds.map(() => 0));
  newestCommits.mockRejectedValueOnce(down);
  const policies = admissionPolicies({ changes: { newestCommits }, list: async () => ({ items: [] }) });
  const calls = [policies.hooks(0), policies.hooks(0)];
  await expect(calls[0]).rejects.toBe(down);
  await expect(calls[1]).rejects.toBe(down);
  expect(await policies.hooks(0)).toEqual({ validating: [], mutating: [] });
  expect(newestCommits).toHaveBeenCalledTimes(2);
});

describe('custom resources', () => {
  const WIDGETS = widgetsIn('default');
  const OF_WIDGETS = {
    matchConstraints: { resourceRules: [rule(['CREATE', 'UPDATE'], ['widgets'], ['example.com'])] },
    validations: [{ expression: 'object.spec.size < 5', message: 'too large' }],
  };

  it('are validated by a policy', async () => {
    const api = await withPolicy(OF_WIDGETS);
    await created(api, DEFINITIONS, widgetDefinition());
    await created(api, WIDGETS, widget('a', { size: 4 }));
    const refused = await api.send('POST', WIDGETS, { body: widget('b', { size: 5 }) });
    expect([refused.code, refused.body.message]).toEqual([422, expect.stringContaining('denied request: too large')]);
    expect(api.faults).toEqual([]);
  });

  describe('as parameters', () => {
    const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget' };
    const AT_MOST = { paramKind: WIDGET, validations: [{ expression: 'size(object.data) <= params.spec.size' }] };
    const two = { x: '', y: '' };

    async function clusterWith(paramRef: object, scope: 'Namespaced' | 'Cluster' = 'Namespaced') {
      const api = apiInMemory();
      const definition = widgetDefinition();
      await created(api, DEFINITIONS, { ...definition, spec: { ...definition.spec, scope } });
      await created(api, POLICIES, policy('p', AT_MOST));
      await created(api, BINDINGS, binding('p', { paramRef: { parameterNotFoundAction: 'Deny', ...paramRef } }));
      return api;
    }

    it('are found by name, in the namespace of the request or in another one', async () => {
      for (const paramRef of [{ name: 'limit' }, { name: 'limit', namespace: 'default' }]) {
        const api = await clusterWith(paramRef);
        await created(api, WIDGETS, widget('limit', { size: 1 }));
        expect(await put(api, map('a', { x: '' }))).toMatchObject({ code: 201 });
        expect(await put(api, map('b', two))).toMatchObject({ code: 422 });
        await api.send('PATCH', `${WIDGETS}/limit`, { body: { spec: { size: 2 } }, contentType: MERGE });
        expect(await put(api, map('b', two))).toMatchObject({ code: 201 });
        expect(api.faults).toEqual([]);
      }
      const elsewhere = await clusterWith({ name: 'limit', namespace: 'other' });
      await created(elsewhere, WIDGETS, widget('limit', { size: 9 }));
      expect((await put(elsewhere, map('a'))).message).toContain('no params found for policy binding with `Deny`');
    });

    it('are found by name in the cluster', async () => {
      const api = await clusterWith({ name: 'limit' }, 'Cluster');
      await created(api, '/apis/example.com/v1/widgets', widget('limit', { size: 1 }));
      expect(await put(api, map('a', { x: '' }))).toMatchObject({ code: 201 });
      expect(await put(api, map('b', two))).toMatchObject({ code: 422 });
      const inNamespace = await clusterWith({ name: 'limit', namespace: 'default' }, 'Cluster');
      const why = 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`';
      expect((await put(inNamespace, map('a'))).message).toContain(why);
    });

    it('are found by labels: the policy must hold for each', async () => {
      const api = await clusterWith({ selector: { matchLabels: { tier: 'a' } } });
      const labelled = (name: string, size: number, tier: string) => {
        const { metadata, ...more } = widget(name, { size });
        return { ...more, metadata: { ...metadata, labels: { tier } } };
      };
      await created(api, WIDGETS, labelled('large', 5, 'a'));
      await created(api, WIDGETS, labelled('other', 1, 'b'));
      expect(await put(api, map('a', two))).toMatchObject({ code: 201 });
      await created(api, WIDGETS, labelled('small', 1, 'a'));
      expect(await put(api, map('b', two))).toMatchObject({ code: 422 });
    });

    it('let the write pass where there are none, with parameterNotFoundAction Allow', async () => {
      const api = await clusterWith({ name: 'limit', parameterNotFoundAction: 'Allow' });
      expect(await put(api, map('a', two))).toMatchObject({ code: 201 });
    });

    it('change objects', async () => {
      const api = apiInMemory();
      await created(api, DEFINITIONS, widgetDefinition());
      await created(api, WIDGETS, widget('owner', { size: 7 }));
      const expression = 'Object{data: {"size": string(params.spec.size)}}';
      const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }];
      await created(api, MUTATING, policy('m', { paramKind: WIDGET, mutations, reinvocationPolicy: 'Never' }));
      const paramRef = { name: 'owner', parameterNotFoundAction: 'Deny' };
      await created(api, MUTATING_BINDINGS, { metadata: { name: 'm' }, spec: { policyName: 'm', paramRef } });
      expect((await put(api, map('a', { x: '' }))).body.data).toEqual({ x: '', size: '7' });
    });

    it.each([
      ['coordination.k8s.io/v1', 'Lease'],
      ['v1', 'Node'],
      ['nodekeeper.dev/v1alpha1', 'NodeIdentity'],
    ])('are of no kind that functions of controllers cannot read: %s %s', async (apiVersion, kind) => {
      const paramRef = { name: 'a', parameterNotFoundAction: 'Allow' };
      const policy = { paramKind: { apiVersion, kind }, validations: [{ expression: 'true' }] };
      const api = await withPolicy(policy, { paramRef });
      expect((await put(api, map('a'))).message).toContain(`paramKind: '${apiVersion}, Kind=${kind}'`);
    });

    it('fail the policy as its failurePolicy says while their kind is not defined', async () => {
      const message = "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Widget'";
      for (const [failurePolicy, code] of [
        ['Fail', 422],
        ['Ignore', 201],
      ] as const) {
        const ofBinding = { paramRef: { name: 'limit', parameterNotFoundAction: 'Deny' } };
        const api = await withPolicy({ ...AT_MOST, failurePolicy }, ofBinding);
        const answer = await put(api, map('a'));
        expect(answer.code).toBe(code);
        if (code === 422) expect(answer.message).toContain(message);
      }
    });

    it('cost a read of the object per binding, and one of the definitions', async () => {
      const api = await clusterWith({ name: 'limit' });
      await created(api, BINDINGS, {
        ...binding('p', { paramRef: { name: 'limit', parameterNotFoundAction: 'Deny' } }),
        metadata: { name: 'q' },
      });
      await created(api, WIDGETS, widget('limit', { size: 3 }));
      await put(api, map('a', two));
      const reads: string[] = [];
      const read = (pk: string): void => {
        if (/widgets|customresourcedefinitions/.test(pk)) reads.push(pk.replace(/^(\w+#[^#]+).*$/, '$1'));
      };
      const items: ItemStore = {
        ...api.items,
        get(key, options) {
          read(key.pk);
          return api.items.get(key, options);
        },
        getMany(keys, options) {
          for (const { pk } of keys) read(pk);
          return api.items.getMany(keys, options);
        },
        query(request) {
          read(request.pk);
          return api.items.query(request);
        },
      };
      const counted = apiInMemory({ items, clock: { nowMs: api.nowMs } });
      expect(await put(counted, map('b', two))).toMatchObject({ code: 201 });
      reads.length = 0;
      expect(await put(counted, map('c', two))).toMatchObject({ code: 201 });
      expect(reads.toSorted()).toEqual([
        'h#customresourcedefinitions',
        'o#widgets.example.com',
        'o#widgets.example.com',
      ]);
    });

    it('are shown by authors who may read them', async () => {
      const api = apiInMemory({ users: { uma: { name: 'uma', groups: [] } } });
      const as = { headers: { authorization: 'Bearer uma' } };
      const allow = async (name: string, rules: object[]) => {
        const RBAC = '/apis/rbac.authorization.k8s.io/v1';
        await created(api, `${RBAC}/clusterroles`, { metadata: { name }, rules });
        const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
        const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'uma' }];
        await created(api, `${RBAC}/clusterrolebindings`, { metadata: { name }, roleRef, subjects });
      };
      const policies = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];
      await allow('policies', [
        { verbs: ['create'], apiGroups: ['admissionregistration.k8s.io'], resources: policies },
      ]);
      const paramRef = { name: 'limit', namespace: 'default', parameterNotFoundAction: 'Deny' };
      const write = async (name: string) => {
        const ofPolicy = await api.send('POST', POLICIES, { body: policy(name, AT_MOST), ...as });
        await api.send('POST', POLICIES, { body: policy(name, AT_MOST) });
        const ofBinding = await api.send('POST', BINDINGS, { body: binding(name, { paramRef }), ...as });
        return [ofPolicy, ofBinding].map(({ code, body }) => (code === 201 ? code : body.message));
      };
      const refused = [
        expect.stringContaining('user uma must have "get" permission on all objects of the paramKind'),
        expect.stringContaining('user uma does not have "get" permission on the object referenced by paramRef'),
      ];
      // Before its kind is defined, and then.
      expect(await write('a')).toEqual(refused);
      await created(api, DEFINITIONS, widgetDefinition());
      expect(await write('b')).toEqual(refused);
      await allow('widgets', [{ verbs: ['get'], apiGroups: ['example.com'], resources: ['widgets'] }]);
      expect(await write('c')).toEqual([201, 201]);
    });
  });
});
