/** The annotation of pods that must not run twice, through the API. */
import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const ANNOTATION = 'nodekeeper.dev/offline-stop-after';
const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const FORM = 'must be a duration from 10m to 720h, such as 2h';
const GRACE = 'needs a terminationGracePeriodSeconds above 0';

const template = (annotation: string | undefined, spec: object = {}) => ({
  metadata: {
    labels: { app: 'a' },
    ...(annotation === undefined ? {} : { annotations: { [ANNOTATION]: annotation } }),
  },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});
const pod = (annotation: string | undefined, spec?: object) => {
  const { metadata, ...rest } = template(annotation, spec);
  return { ...rest, metadata: { ...metadata, name: 'p' } };
};

async function stored(annotation: string | undefined) {
  const api = apiInMemory();
  expect((await api.send('POST', PODS, { body: pod(annotation) })).code).toBe(201);
  return api;
}

describe('nodekeeper.dev/offline-stop-after', () => {
  it.each([
    ['2 hours', undefined, FORM],
    ['', undefined, FORM],
    ['9m59s', undefined, FORM],
    ['721h', undefined, FORM],
    ['2h', { terminationGracePeriodSeconds: 0 }, GRACE],
  ])('is refused on a pod: %j with %j', async (annotation, spec, text) => {
    const { code, body } = await apiInMemory().send('POST', PODS, { body: pod(annotation, spec) });
    expect(code).toBe(422);
    expect(body.details.causes).toMatchObject([
      { field: `metadata.annotations[${ANNOTATION}]`, message: expect.stringContaining(text) },
    ]);
  });

  it.each([
    ['apps/v1', 'deployments', 'spec.template', (body: object) => ({ replicas: 1, template: body })],
    ['apps/v1', 'statefulsets', 'spec.template', (body: object) => ({ serviceName: 's', template: body })],
  ])('is refused in a template of %s %s', async (group, resource, field, specOf) => {
    const create = (annotation: string, spec?: object) =>
      apiInMemory().send('POST', `/apis/${group}/namespaces/default/${resource}`, {
        body: {
          metadata: { name: 'w' },
          spec: { selector: { matchLabels: { app: 'a' } }, ...specOf(template(annotation, spec)) },
        },
      });
    expect((await create('2h')).code).toBe(201);
    for (const answer of [await create('soon'), await create('2h', { terminationGracePeriodSeconds: 0 })]) {
      expect(answer.code).toBe(422);
      expect(answer.body.details.causes).toMatchObject([{ field: `${field}.annotations[${ANNOTATION}]` }]);
    }
  });

  it('is refused in the template of a Job inside a CronJob', async () => {
    const body = {
      metadata: { name: 'w' },
      spec: {
        schedule: '* * * * *',
        jobTemplate: { spec: { template: template('soon', { restartPolicy: 'Never' }) } },
      },
    };
    const { code, body: status } = await apiInMemory().send('POST', '/apis/batch/v1/namespaces/default/cronjobs', {
      body,
    });
    expect([code, status.message]).toEqual([422, expect.stringContaining(FORM)]);
  });

  it.each([
    ['changed', '2h', '3h'],
    ['changed to another form of the same time', '2h', '120m'],
    ['removed', '2h', null],
    ['added', undefined, '2h'],
  ])('cannot be %s: not by PATCH, not by PUT, and not through the status', async (_, before, after) => {
    const api = await stored(before);
    const patch = { metadata: { annotations: { [ANNOTATION]: after } } };
    const { body: current } = await api.send('GET', `${PODS}/p`);
    const { [ANNOTATION]: _old, ...others } = current.metadata.annotations ?? {};
    const annotations = after === null ? others : { ...others, [ANNOTATION]: after };
    const put = { ...current, metadata: { ...current.metadata, annotations } };
    for (const path of [`${PODS}/p`, `${PODS}/p/status`]) {
      for (const answer of [
        await api.send('PATCH', path, { body: patch, contentType: MERGE }),
        await api.send('PUT', path, { body: put }),
      ]) {
        expect([answer.code, answer.body.message]).toEqual([422, expect.stringContaining('field is immutable')]);
      }
    }
    const { body } = await api.send('GET', `${PODS}/p`);
    expect(body.metadata.annotations?.[ANNOTATION]).toBe(before);
  });

  it('stays in a write that changes something else', async () => {
    const api = await stored('2h');
    const labelled = await api.send('PATCH', `${PODS}/p`, {
      body: { metadata: { labels: { app: 'b' } } },
      contentType: MERGE,
    });
    const running = await api.send('PATCH', `${PODS}/p/status`, {
      body: { status: { phase: 'Running' } },
      contentType: MERGE,
    });
    expect([labelled.code, running.code]).toEqual([200, 200]);
    expect(running.body.metadata.annotations[ANNOTATION]).toBe('2h');
  });
});
