/** Cells of tables that several kinds have. Source: upstream pkg/printers/internalversion/printers.go. */
import { ageSince } from '../kubernetes/age.ts';
import { NONE, textColumn } from '../kubernetes/columns.ts';
import type { LabelSelectorSpec } from '../kubernetes/selectors.ts';
import type { Column } from './descriptor.ts';
import type { KubeObject, PodTemplateSpec } from './types.ts';

export const integerColumn = (name: string, description: string, priority = 0): Column => ({
  ...textColumn(name, description, priority),
  type: 'integer',
});

export const booleanColumn = (name: string, description: string): Column => ({
  ...textColumn(name, description),
  type: 'boolean',
});

export const createdAtColumn: Column = { ...textColumn('Created At', 'When the object was created.'), type: 'date' };

export const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';
export const ageOf = ({ metadata }: KubeObject, nowMs: number): string => ageSince(metadata.creationTimestamp, nowMs);

/** Labels as `key=value`, sorted. */
export const labelsCell = (labels: Readonly<Record<string, string>> = {}): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',') || NONE;

const OPERATOR_WORDS: Readonly<Record<string, string>> = { In: 'in', NotIn: 'notin' };

/** A label selector as text, in the form that the query option labelSelector has. */
export function selectorText(selector: LabelSelectorSpec = {}): string {
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    const word = OPERATOR_WORDS[operator];
    if (word !== undefined) return { key, text: `${key} ${word} (${[...values].sort().join(',')})` };
    return { key, text: operator === 'DoesNotExist' ? `!${key}` : key };
  });
  const terms = [...labels, ...expressions].sort((left, right) => (left.key < right.key ? -1 : 1));
  return terms.map(({ text }) => text).join(',');
}

export const selectorCell = (selector: LabelSelectorSpec | undefined): string => selectorText(selector) || NONE;

export const templateColumns: readonly Column[] = [
  textColumn('Containers', 'Names of the containers.', 1),
  textColumn('Images', 'Images of the containers.', 1),
];

/** Names and images of the containers of a template. */
export function templateCells(template: PodTemplateSpec | undefined): [names: string, images: string] {
  const { containers = [] } = template?.spec ?? {};
  return [containers.map(({ name = '' }) => name).join(','), containers.map(({ image = '' }) => image).join(',')];
}

/** The first items of a list, and how many follow. */
export function shortList(items: readonly string[], countMax: number): string {
  if (items.length === 0) return NONE;
  const more = items.length - countMax;
  return items.slice(0, countMax).join(',') + (more > 0 ? ` + ${more} more...` : '');
}

const ACCESS_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

/** Access modes of a volume, abbreviated. */
export const accessModesCell = (modes: readonly string[] = []): string =>
  [...new Set(modes)].map((mode) => ACCESS_MODES[mode] ?? mode).join(',');
