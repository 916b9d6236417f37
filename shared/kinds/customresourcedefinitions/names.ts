/**
 * Which names a definition gets: those that no other definition of its group has. Pure.
 * Source: k8s.io/apiextensions-apiserver pkg/controller/{status,establish}.
 */

import { jsonEqual } from '../../kubernetes/json.ts';
import { type DefinitionNames, isEstablished, type KubeCustomResourceDefinition, withCondition } from './definition.ts';

interface Taken {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

function takenBy(definitions: readonly KubeCustomResourceDefinition[]): Taken {
  const accepted = definitions.map(({ status }) => status?.acceptedNames ?? {});
  return {
    resources: new Set(
      accepted.flatMap(({ plural = '', singular = '', shortNames = [] }) => [plural, singular, ...shortNames]),
    ),
    kinds: new Set(accepted.flatMap(({ kind = '', listKind = '' }) => [kind, listKind])),
  };
}

/**
 * The definition with acceptedNames and the conditions NamesAccepted and Established.
 *
 * @param others the definitions of the same group
 * @param at time of a condition that changes, RFC 3339
 */
export function withAcceptedNames(
  definition: KubeCustomResourceDefinition,
  others: readonly KubeCustomResourceDefinition[],
  at: string,
): KubeCustomResourceDefinition {
  const requested = definition.spec?.names;
  if (requested === undefined) return definition;
  const former: Partial<DefinitionNames> = definition.status?.acceptedNames ?? {};
  if (jsonEqual(requested, former) && isEstablished(definition)) return definition;
  const taken = takenBy(others);
  const accepted: Partial<DefinitionNames> = { ...former };
  const conflicts: { reason: string; message: string }[] = [];
  const decide = (
    name: 'plural' | 'singular' | 'kind' | 'listKind',
    reason: string,
    names: ReadonlySet<string>,
  ): void => {
    const wanted = requested[name] ?? '';
    if (wanted !== (former[name] ?? '') && names.has(wanted)) conflicts.push({ reason, message: inUse(wanted) });
    else accepted[name] = wanted;
  };
  decide('plural', 'PluralConflict', taken.resources);
  decide('singular', 'SingularConflict', taken.resources);
  const shortNames = requested.shortNames ?? [];
  const refused = shortNames.filter((name) => !(former.shortNames ?? []).includes(name) && taken.resources.has(name));
  if (refused.length > 0) conflicts.push({ reason: 'ShortNamesConflict', message: listed(refused.map(inUse)) });
  else setList(accepted, 'shortNames', requested.shortNames);
  decide('kind', 'KindConflict', taken.kinds);
  decide('listKind', 'ListKindConflict', taken.kinds);
  setList(accepted, 'categories', requested.categories);
  // The last conflict is shown, as upstream.
  const conflict = conflicts.at(-1);
  const named = withCondition(
    { ...definition, status: { ...definition.status, acceptedNames: accepted } },
    conflict === undefined
      ? { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
      : { type: 'NamesAccepted', status: 'False', ...conflict },
    at,
  );
  if (isEstablished(definition)) return named;
  return withCondition(
    named,
    conflict === undefined
      ? {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        }
      : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
    at,
  );
}

const inUse = (name: string): string => `${JSON.stringify(name)} is already in use`;
const listed = (messages: readonly string[]): string =>
  messages.length === 1 ? messages[0]! : `[${messages.join(', ')}]`;

function setList(
  names: Partial<DefinitionNames>,
  name: 'shortNames' | 'categories',
  value: string[] | undefined,
): void {
  if (value === undefined) delete names[name];
  else names[name] = value;
}
