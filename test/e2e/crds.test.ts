/** Definitions and their objects in `nodekeeper serve`, with kubectl, Helm and client libraries. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  DEFINITIONS,
  longSchema,
  widget,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../support/custom-definition.ts';
import { makeHelm } from '../support/helm.ts';
import { type Kubectl, makePlace, oldestAndNewest, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);
/** A folder with a folder of definitions per project, as they are published. Absent: none are installed. */
const PUBLISHED = process.env['PUBLISHED_DEFINITIONS'];

const SPEC_SCHEMA = '/spec/versions/0/schema/openAPIV3Schema/properties/spec';

let local: LocalForTest;

beforeAll(async () => {
  local = await startLocalForTest({ nodes: 0 });
}, 90_000);

afterAll(async () => {
  await local?.stop();
});

async function send(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const answer = await local.client.send({ method, path, ...(body === undefined ? {} : { body }) } as never);
  if (answer.kind !== 'answered') throw new Error(`${method} ${path}`, { cause: answer.cause });
  return answer;
}

describe.each(oldestAndNewest().filter(({ minor }) => minor >= 27))(
  '$name',
  { timeout: 120_000 },
  (kubectl: Kubectl) => {
    it('defines a kind, and creates, prints, explains, applies, edits and deletes its objects', async () => {
      const place = makePlace();
      const run = async (args: string, stdin?: unknown) => {
        const options = {
          kubeconfig: local.kubeconfig,
          place,
          stdin: stdin === undefined ? '' : JSON.stringify(stdin),
        };
        const { exitCode, stdout, stderr } = await runKubectl(kubectl, args.split(' '), options);
        return { exitCode, stdout, stderr };
      };
      const ok = async (args: string, stdin?: unknown) => {
        const { exitCode, stdout, stderr } = await run(args, stdin);
        expect(exitCode, `${args}: ${stderr}`).toBe(0);
        return stdout;
      };
      try {
        const both = { apiVersion: 'v1', kind: 'List', items: [widgetDefinition()] };
        expect(await ok('apply -f -', both)).toContain('widgets.example.com created');
        await ok('wait --for=condition=Established crd/widgets.example.com --timeout=20s');
        expect(await ok('apply -f -', widget('a', { size: 3 }))).toContain('widget.example.com/a created');
        expect(await ok('get wd')).toMatch(/^NAME +SIZE\na +3\n$/);
        expect(await ok('get all')).toContain('widget.example.com/a');
        expect(await ok('explain widget.spec.size')).toContain('How large it is.');
        expect(await ok('apply -f -', widget('a', { size: 4 }))).toContain('configured');
        expect(await ok('apply --server-side --force-conflicts -f -', widget('a', { size: 5 }))).toContain(
          'serverside-applied',
        );
        expect(await ok('patch widget a --type merge -p {"spec":{"colour":"blue"}}')).toContain('patched');
        await ok('scale widget a --replicas=2');
        await ok('patch widget a --subresource=status --type=merge -p {"status":{"phase":"Fine"}}');
        await ok('wait --for=jsonpath={.status.phase}=Fine widget/a --timeout=20s');
        await ok('label widget a tier=front');
        expect(await ok('get widget -l tier=front -o jsonpath={.items[0].spec}')).toBe(
          '{"colour":"blue","replicas":2,"size":5}',
        );
        expect(await ok('get widget --field-selector spec.colour=blue -o name')).toBe('widget.example.com/a\n');
        const refused = await run('apply -f -', widget('b', { size: 'large', nope: 1 }));
        expect(refused.stderr).toContain('unknown field "spec.nope"');
        const invalid = await run('create --validate=false -f -', widget('b', { size: 0 }));
        expect(invalid.stderr).toContain('spec.size in body should be greater than or equal to 1');
        await ok('delete widget a');
        const rules = [
          { rule: 'self.size < 50', message: 'a widget must be small' },
          { rule: 'self.size >= oldSelf.size', messageExpression: "'was %d'.format([oldSelf.size])" },
        ];
        const ruled = [{ op: 'add', path: `${SPEC_SCHEMA}/x-kubernetes-validations`, value: rules }];
        await ok(`patch crd widgets.example.com --type=json -p ${JSON.stringify(ruled).replaceAll(' ', '\\u0020')}`);
        const large = await run('create -f -', widget('d', { size: 50 }));
        expect(large.stderr).toContain('spec: Invalid value: a widget must be small');
        await ok('create -f -', widget('d', { size: 9 }));
        const shrunk = await run('patch widget d --type=merge -p {"spec":{"size":8}}');
        expect(shrunk.stderr).toContain('spec: Invalid value: was 9');
        await ok('patch widget d --type=merge -p {"spec":{"size":10}}');
        await ok('create -f -', widget('c'));
        await ok('delete crd widgets.example.com --timeout=30s');
        expect((await send('GET', widgetsIn('default'))).status).toBe(404);
      } finally {
        place.remove();
      }
    });
  },
);

describe('a definition of more than 1 MB', { timeout: 60_000 }, () => {
  it('is created, read whole, and deleted', async () => {
    const large = widgetDefinition(
      [
        widgetVersion('v1', {
          schema: { openAPIV3Schema: longSchema(1_300_000) },
          selectableFields: [],
          subresources: {},
        }),
      ],
      { plural: 'larges', kind: 'Large', shortNames: [] },
    );
    expect(JSON.stringify(large).length).toBeGreaterThan(1_048_576);
    const created = await send('POST', DEFINITIONS, large);
    expect(created.status).toBe(201);
    const read = (await send('GET', `${DEFINITIONS}/larges.example.com`)).body as typeof large;
    expect(read.spec?.versions[0]?.schema).toEqual(large.spec?.versions[0]?.schema);
    await send('DELETE', `${DEFINITIONS}/larges.example.com`);
    await until(async () => (await send('GET', `${DEFINITIONS}/larges.example.com`)).status === 404, {
      withinMs: 20_000,
    });
  });
});

describe('other clients', { timeout: 120_000 }, () => {
  it('Helm installs a chart with a definition and an object of it', () => {
    const helm = makeHelm(local.kubeconfig);
    try {
      const chart = fileURLToPath(new URL('crd-chart', FIXTURES));
      expect(helm.run('install', 'desk', chart)).toContain('STATUS: deployed');
      expect(helm.run('upgrade', 'desk', chart, '--set', 'watts=9')).toContain('STATUS: deployed');
      expect(helm.run('get', 'manifest', 'desk')).toContain('watts: 9');
      helm.run('uninstall', 'desk');
    } finally {
      helm.remove();
    }
  });

  it('the Python client and an informer of the JavaScript client follow objects', async () => {
    expect((await send('POST', DEFINITIONS, widgetDefinition())).status).toBe(201);
    const program = fileURLToPath(new URL('python/custom_objects.py', FIXTURES));
    const { stdout } = await promisify(execFile)('/usr/bin/python3', [program, local.kubeconfig], { timeout: 60_000 });
    expect(stdout).toBe('ok\n');
    const config = new KubeConfig();
    config.loadFromFile(local.kubeconfig);
    const api = config.makeApiClient(CustomObjectsApi);
    const where = { group: 'example.com', version: 'v1', namespace: 'default', plural: 'widgets' };
    const informer = makeInformer(config, widgetsIn('default'), () =>
      api.listNamespacedCustomObject(where).then((list) => list as KubernetesListObject<KubernetesObject>),
    );
    await informer.start();
    try {
      for (let index = 0; index < 10; index += 1) await send('POST', widgetsIn('default'), widget(`w${index}`));
      for (let index = 0; index < 5; index += 1) await send('DELETE', `${widgetsIn('default')}/w${index}`);
      await until(() => informer.list().length === 5 && informer.get('w9', 'default') !== undefined, {
        withinMs: 30_000,
      });
    } finally {
      await informer.stop();
    }
  });
});

describe.each(PUBLISHED === undefined ? [] : readdirSync(PUBLISHED))('the definitions of %s', (project) => {
  it('are installed as they are published', { timeout: 300_000 }, async () => {
    const [, newest] = oldestAndNewest();
    const folder = join(PUBLISHED ?? '', project);
    const options = { kubeconfig: local.kubeconfig, timeoutMs: 200_000 };
    const applied = await runKubectl(newest!, ['apply', '--server-side', '-f', folder], options);
    expect(applied.exitCode, applied.stderr).toBe(0);
    const established = ['wait', '--for=condition=Established', '-f', folder, '--timeout=30s'];
    const waited = await runKubectl(newest!, established, options);
    expect(waited.exitCode, waited.stderr).toBe(0);
  });
});
