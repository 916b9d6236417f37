import { expect, it } from 'vitest';
import { resources } from '../../shared/kinds/registry.ts';
import { REMOVED_KINDS } from './manifest.ts';

/** In tables of their own. */
const NOT_OBJECTS = ['BootstrapToken', 'NodeIdentity'];

it('the removal of an object of every kind starts the function, except of Events', () => {
  const kinds = resources.filter((each) => each.servedFrom === undefined && each.verbs.includes('delete'));
  const names = kinds.map(({ kind }) => kind).filter((kind) => kind !== 'Event' && !NOT_OBJECTS.includes(kind));
  expect(REMOVED_KINDS).toEqual(names.sort());
});
