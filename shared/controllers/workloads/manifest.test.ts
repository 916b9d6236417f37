import { expect, it } from 'vitest';
import { resources } from '../../api/kinds/registry.ts';
import { REMOVED_KINDS } from './manifest.ts';

it('the removal of an object of every kind in namespaces starts the function, except of Events; so does that of a Node', () => {
  const kinds = resources.filter(
    (each) => each.namespaced && each.servedFrom === undefined && each.verbs.includes('delete'),
  );
  expect(REMOVED_KINDS).toEqual(
    kinds
      .map(({ kind }) => kind)
      .filter((kind) => kind !== 'Event')
      .concat('Node')
      .sort(),
  );
});
