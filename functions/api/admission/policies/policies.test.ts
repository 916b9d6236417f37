import { describe, expect, it } from 'vitest';
import { admissionPolicies } from '../../../../shared/kinds/admission-policies/policy-memory.ts';
import { type ApiInMemory, apiInMemory } from '../../../../test/support/api-in-memory.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../../../../test/support/custom-definition.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const POLICIES = `${GROUP}/validatingadmissionpolicies`;
const BINDINGS = `${GROUP}/validatingadmissionpolicybindings`;
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
  const MUTATING = `${GROUP}/mutatingadmissionpolicies`;
  const MUTATING_BINDINGS = `${GROUP}/mutatingadmissionpolicybindings`;

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

  it('are not parameters: the policy fails as its failurePolicy says', async () => {
    const api = apiInMemory();
    await created(api, DEFINITIONS, widgetDefinition());
    await created(api, WIDGETS, widget('limit', { size: 3 }));
    const paramKind = { apiVersion: 'example.com/v1', kind: 'Widget' };
    await created(api, POLICIES, policy('p', { paramKind, validations: [{ expression: 'params.spec.size > 1' }] }));
    const paramRef = { name: 'limit', namespace: 'default', parameterNotFoundAction: 'Deny' };
    await created(api, BINDINGS, binding('p', { paramRef }));
    const message = "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Widget'";
    expect(await put(api, map('a'))).toMatchObject({ code: 422, message: expect.stringContaining(message) });
  });
});
