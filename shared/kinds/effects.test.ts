import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../../test/support/application-objects.ts';
import { expectDocumented, markdownTable } from '../../test/support/documented.ts';
import { qualifiedResource } from '../kubernetes/status.ts';
import { type Effect, effectOf, KIND_EFFECTS } from './effects.ts';
import { resources } from './registry.ts';

const shortName = (kind: string): string => (kind.endsWith('.metrics.k8s.io') ? kind : (kind.split('.')[0] ?? ''));
const namesOf = (kinds: readonly string[]): string => [...new Set(kinds.map(shortName))].join(', ');
const kindsOf = (effect: Effect): string =>
  namesOf(KIND_EFFECTS.filter((each) => each.effect === effect).flatMap(({ kinds }) => kinds));
const unenforced = resources.filter((each) => effectOf(each)?.effect === 'unenforced' && each.servedFrom === undefined);

describe('the table of kinds', () => {
  it('has each kind that is served once, and no other', () => {
    const served = new Set(resources.map(qualifiedResource));
    expect(KIND_EFFECTS.flatMap(({ kinds }) => kinds).toSorted()).toEqual([...served].toSorted());
  });

  it('calls a kind empty when no user can create it, and warns of each that nothing acts on', () => {
    for (const each of resources) {
      const { effect, warning } = effectOf(each) ?? {};
      if (effect === 'empty')
        expect([each.resource, each.verbs]).not.toEqual([each.resource, expect.arrayContaining(['create'])]);
      if (effect === 'unenforced') expect([each.resource, warning]).toEqual([each.resource, expect.any(String)]);
    }
  });

  it('calls no kind unenforced that a controller, the scheduler or the agent knows', () => {
    const textOf = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
    const folders = globSync('shared/kinds/*/resource.ts', { cwd: repositoryRoot })
      .filter((path) => unenforced.some(({ resource }) => textOf(path).includes(`'${resource}'`)))
      .map(dirname);
    expect(folders.length).toBeGreaterThan(2);
    const programs = globSync('{functions,server,agent,shared/{scheduling,fleet}}/**/*.ts', {
      cwd: repositoryRoot,
      exclude: ['functions/api/**', '**/*.test.ts'],
    });
    const knowing = programs.filter((path) => folders.some((folder) => textOf(path).includes(`${folder}/`)));
    expect(knowing).toEqual([]);
  });

  it('is in the documentation', () => {
    const rows = KIND_EFFECTS.map(({ kinds, effect, what }) => [namesOf(kinds), effect, what]);
    expectDocumented('docs/clients.md', 'kinds', markdownTable([['kinds', 'effect', 'what happens'], ...rows]));
    const summary = [
      ['what happens', 'kinds'],
      ['something acts on them', kindsOf('acts')],
      ['stored, for those who read them', kindsOf('data')],
      ['**stored, and nothing acts on them**: each creation is answered with a warning', kindsOf('unenforced')],
      ['always empty; writes are refused', kindsOf('empty')],
    ];
    expectDocumented('docs/kubectl.md', 'kinds-by-effect', markdownTable(summary));
    const notYet = KIND_EFFECTS.filter(({ effect, warning }) => effect === 'empty' || warning !== undefined);
    // Links of docs, from the root.
    const lines = notYet.map(({ kinds, what }) => [namesOf(kinds), what.replaceAll(/\]\((?=[\w-]+\.md)/g, '](docs/')]);
    expectDocumented('README.md', 'not-yet', markdownTable([['kinds', 'what happens'], ...lines]));
  });
});

describe('a kind that nothing acts on', () => {
  it.each(unenforced.map((each) => [`${each.resource} ${each.version}`, each] as const))(
    '%s is created with a warning, and refused with the policy unenforcedKinds: refuse',
    async (_, { group, version, resource, kind, namespaced }) => {
      const path = `/apis/${group}/${version}/${namespaced ? 'namespaces/default/' : ''}${resource}`.replace(
        '/apis//',
        '/api/',
      );
      const body = {
        ...APPLICATION_OBJECTS[resource],
        metadata: { name: 'a' },
      };
      const apply = {
        body: { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...body },
        contentType: 'application/apply-patch+yaml',
      };
      const warns = apiInMemory();
      const created = await warns.send('POST', path, { body });
      expect([created.code, created.headers['warning']]).toEqual([
        201,
        expect.stringMatching(/^299 - "the \w+ is stored: no/),
      ]);
      const refuses = apiInMemory({ policy: { unenforcedKinds: 'refuse' } });
      const answers = [
        await refuses.send('POST', path, { body }),
        await refuses.send('PATCH', `${path}/a?fieldManager=me`, apply),
      ];
      for (const { code, body: answer } of answers) {
        expect([code, answer.message]).toEqual([
          403,
          expect.stringContaining('"a" is forbidden: the policy has unenforcedKinds: refuse, and nothing acts on it'),
        ]);
      }
      expect((await refuses.send('GET', path)).body.items).toEqual([]);
    },
  );
});
