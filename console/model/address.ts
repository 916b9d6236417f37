/** The fragment of the address: a view, what it is about, and how it is filtered. It can be kept and sent. */

export interface Address {
  readonly route: string;
  /** Parts after the route, decoded. */
  readonly names: readonly string[];
  readonly query: URLSearchParams;
}

export function parseAddress(fragment: string): Address {
  const [path = '', query = ''] = fragment.replace(/^#\/?/, '').split('?', 2);
  const [route = '', ...names] = path.split('/').map(decoded);
  return { route: route === '' ? 'now' : route, names, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const addressOf = (route: string, ...names: readonly string[]): string =>
  `#/${[route, ...names.map(encodeURIComponent)].join('/')}`;

/** The same view with other parts of its query; '' removes one. */
export function withQuery({ route, names, query }: Address, changes: Readonly<Record<string, string>>): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return `${addressOf(route, ...names)}${text === '' ? '' : `?${text}`}`;
}

export const VIEWS = [
  ['now', 'Now'],
  ['nodes', 'Nodes'],
  ['pods', 'Pods'],
  ['workloads', 'Workloads'],
  ['decisions', 'Decisions'],
  ['detector', 'Detector'],
  ['cost', 'Cost'],
] as const;

/**
 * Where a typed word leads: a view by the begin of its name, a pod by NAMESPACE/NAME, otherwise a node by its name, and
 * a filter of the nodes where no node has it.
 */
export function jumpTarget(typed: string, isNode: (name: string) => boolean): string | undefined {
  const text = typed.trim().replace(/^:/, '');
  if (text === '') return undefined;
  if (isNode(text)) return addressOf('node', text);
  const [namespace = '', name = '', ...more] = text.split('/');
  if (namespace !== '' && name !== '' && more.length === 0) return addressOf('pod', namespace, name);
  const view = VIEWS.find(([route]) => route.startsWith(text.toLowerCase()));
  if (view !== undefined) return addressOf(view[0]);
  return `${addressOf('nodes')}?${new URLSearchParams({ q: text })}`;
}
