import { describe, expect, it } from 'vitest';
import type { KubeJob } from '../../../shared/kinds/types.ts';
import { podTemplateOf } from './pod-template.rule.ts';

const TRACKING = 'batch.kubernetes.io/job-tracking';
const INDEX = 'batch.kubernetes.io/job-completion-index';
const fieldRef = { apiVersion: 'v1', fieldPath: `metadata.labels['${INDEX}']` };
const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } };
const jobOf = (template: object | undefined) =>
  ({ metadata: { name: 'j' }, spec: template && { template } }) as unknown as KubeJob;

describe('the template of the pods of a Job', () => {
  it('has the finalizer once, last, and all else as it is', () => {
    const template = { metadata: { labels: { a: 'b' }, finalizers: [TRACKING, 'own'] }, spec: { hostNetwork: true } };
    const finalizers = ['own', TRACKING];
    expect(podTemplateOf(jobOf(template), undefined)).toEqual({
      ...template,
      metadata: { labels: { a: 'b' }, finalizers },
    });
    expect(podTemplateOf(jobOf(undefined), undefined)).toEqual({ metadata: { finalizers: [TRACKING] } });
  });

  it('has the failures of the index, with a limit for each', () => {
    const job = { metadata: { name: 'j' }, spec: { backoffLimitPerIndex: 1, template: {} } } as unknown as KubeJob;
    const counted = 'batch.kubernetes.io/job-index-failure-count';
    const ignored = 'batch.kubernetes.io/job-index-ignored-failure-count';
    expect(podTemplateOf(job, 2).metadata?.annotations).toEqual({ [INDEX]: '2', [counted]: '0' });
    expect(podTemplateOf(job, 2, { counted: 1, ignored: 3 }).metadata?.annotations).toEqual({
      [INDEX]: '2',
      [counted]: '1',
      [ignored]: '3',
    });
  });

  it('has the index in annotations, labels, the host name and the variables of all containers', () => {
    const own = { name: 'JOB_COMPLETION_INDEX', value: 'mine' };
    const metadata = { labels: { a: 'b' }, annotations: { c: 'd' } };
    const containers = [
      { name: 'x', env: [{ name: 'E' }] },
      { name: 'y', env: [{ name: 'E' }, own] },
    ];
    const spec = { restartPolicy: 'Never', containers, initContainers: [{ name: 'i' }] };
    expect(podTemplateOf(jobOf({ metadata, spec }), 0)).toEqual({
      metadata: {
        finalizers: [TRACKING],
        labels: { a: 'b', [INDEX]: '0' },
        annotations: { c: 'd', [INDEX]: '0' },
      },
      spec: {
        restartPolicy: 'Never',
        hostname: 'j-0',
        containers: [{ name: 'x', env: [{ name: 'E' }, variable] }, containers[1]],
        initContainers: [{ name: 'i', env: [variable] }],
      },
    });
  });

  it('with an index has no first containers where the template has none', () => {
    expect(podTemplateOf(jobOf({}), 7).spec).toEqual({ hostname: 'j-7', containers: [] });
    expect('initContainers' in (podTemplateOf(jobOf({}), 7).spec ?? {})).toBe(false);
  });
});
