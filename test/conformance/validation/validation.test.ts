/**
 * Every constraint of upstream's validation that the tables beside this file name: the counterexample is sent to the
 * API and must be refused with upstream's cause. docs/validation.md has those that are
 * not checked; `WRITE_DOCS=1` writes it anew.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { resources } from '../../../shared/kinds/registry.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { Cause } from '../../../shared/kubernetes/status.ts';
import { type ApiAnswer, type ApiInMemory, apiInMemory } from '../../support/api-in-memory.ts';
import { findDescriptor } from '../../support/find-descriptor.ts';
import { type Checked, type Constraint, type ExpectedCause, edited, within } from './constraint.ts';
import { OTHERWISE_WRITTEN, VALIDATED, type ValidatedKind } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { validationPage } from './page.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

const DOC = new URL('../../../docs/validation.md', import.meta.url);

function descriptorOf(resource: string): ResourceDescriptor {
  const descriptor = findDescriptor(resource);
  if (descriptor === undefined) throw new Error(`${resource} is not served`);
  return descriptor;
}

function collectionOf({ group, version, resource, namespaced }: ResourceDescriptor): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}/${namespaced ? 'namespaces/default/' : ''}${resource}`;
}

const constraintsOf = ({ names, constraints, template }: ValidatedKind): Constraint[] => [
  ...(names === undefined ? [] : metadataConstraints(names)),
  ...(template === undefined ? [] : within(template, podSpec)),
  ...(template === undefined || template === '' ? [] : within(template, templateOnly)),
  ...constraints,
];

const isExpected = ({ reason, field, text = '' }: ExpectedCause, at: string, cause: Cause): boolean =>
  cause.reason === reason && cause.field === (field ?? at) && cause.message.endsWith(text);

/** What differs from the expected refusal; undefined when nothing does. */
function difference({ field, rule, on, cause }: Checked, { code, body }: ApiAnswer): string | undefined {
  const causes: Cause[] = body?.details?.causes ?? [];
  if (code === 422 && causes.some((each) => isExpected(cause, field, each))) return undefined;
  const found = causes.map((each) => `${each.reason} ${each.field}: ${each.message.slice(0, 200)}`);
  const wanted = `${cause.reason} ${cause.field ?? field} …${cause.text ?? ''}`;
  return `${on} ${field}: ${rule}\n  expected ${wanted}\n  ${code} ${found.join('\n  ') || body?.message || ''}`;
}

/** Configurations of webhooks are stored where webhooks are called. */
const CALLS_NONE = { mutators: () => [], validate: async () => {} };

class Counterexamples {
  readonly #api: ApiInMemory = apiInMemory({ webhooksOf: () => CALLS_NONE });
  readonly #descriptor: ResourceDescriptor;
  readonly #base: Omit<KubeObject, 'metadata'>;
  #count = 0;

  constructor(resource: string, base: Omit<KubeObject, 'metadata'>) {
    this.#descriptor = descriptorOf(resource);
    this.#base = base;
  }

  valid(): KubeObject {
    this.#count += 1;
    return { ...structuredClone(this.#base), metadata: { name: `x${String(this.#count).padStart(5, '0')}` } };
  }

  create = (object: KubeObject): Promise<ApiAnswer> =>
    this.#api.send('POST', collectionOf(this.#descriptor), { body: object });

  async send({ on, before, wrong }: Checked): Promise<ApiAnswer> {
    if (on === 'create') return this.create(edited(this.valid(), { ...before, ...wrong }));
    // A write of a status does not change the spec.
    const spec = Object.fromEntries(Object.entries(before).filter(([path]) => path.startsWith('spec.')));
    const created = await this.create(edited(this.valid(), on === 'status' ? spec : before));
    if (created.code !== 201) return created;
    const path = `${collectionOf(this.#descriptor)}/${created.body.metadata.name}`;
    if (on !== 'status') {
      const hasStatus = Object.keys(before).some((field) => field.startsWith('status.'));
      const { body } = hasStatus ? await this.#change(`${path}/status`, created.body, before) : created;
      return this.#change(on === 'resize' ? `${path}/resize` : path, body, wrong);
    }
    const { body: stored } = await this.#change(`${path}/status`, created.body, before);
    return this.#change(`${path}/status`, stored, wrong);
  }

  #change = (path: string, object: KubeObject, edits: Checked['wrong']): Promise<ApiAnswer> =>
    this.#api.send('PUT', path, { body: edited(object, edits) });
}

describe.each(Object.entries(VALIDATED))('%s', (resource, kind) => {
  it('are accepted without a fault', async () => {
    const examples = new Counterexamples(resource, kind.base);
    expect(await examples.create(examples.valid())).toMatchObject({ code: 201 });
  });

  it('are refused for each constraint with the cause of upstream', async () => {
    const examples = new Counterexamples(resource, kind.base);
    const differences: string[] = [];
    for (const each of constraintsOf(kind)) {
      if (each.kind !== 'checked') continue;
      const found = difference(each, await examples.send(each));
      if (found !== undefined) differences.push(found);
    }
    expect(differences.join('\n')).toBe('');
  });
});

it('lists every kind that is served and can be written', () => {
  const written = new Set(resources.filter(({ verbs }) => verbs.includes('create')).map(({ resource }) => resource));
  expect([...written].filter((resource) => VALIDATED[resource] === undefined)).toEqual(OTHERWISE_WRITTEN);
});

it('docs/validation.md lists the constraints that are not checked', () => {
  const page = validationPage();
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(DOC, page);
  expect(readFileSync(DOC, 'utf8')).toBe(page);
});
