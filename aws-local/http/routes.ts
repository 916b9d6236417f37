/**
 * Which route of an HTTP API serves a request. API Gateway prefers the most specific one: a full match before a path
 * variable, a variable before a greedy one (`{proxy+}`), a named method before ANY, and `$default` when nothing else
 * is. The order between "specific path, ANY" and "greedier path, own method" is not documented; here the path decides.
 * Source: API Gateway Developer Guide, "Create routes for HTTP APIs".
 */
export interface Route<Target> {
  /** `PUT /a/{name}`, `ANY /{proxy+}` or `$default`. */
  readonly routeKey: string;
  readonly target: Target;
}

export interface RouteMatch<Target> {
  readonly route: Route<Target>;
  /** Path variables, decoded; undefined for a route without any. */
  readonly pathParameters?: Readonly<Record<string, string>>;
}

interface CompiledRoute<Target> {
  readonly route: Route<Target>;
  readonly method: string;
  readonly segments: readonly Segment[];
}

type Segment = { readonly kind: 'literal' | 'variable' | 'greedy'; readonly text: string };

const RANK = { literal: 0, variable: 1, greedy: 2 };

/** @returns a matcher for one API; `path` is the decoded path, as the function will see it. */
export function compileRoutes<Target>(
  routes: readonly Route<Target>[],
): (method: string, path: string) => RouteMatch<Target> | undefined {
  const fallback = routes.find((route) => route.routeKey === '$default');
  const compiled = routes.filter((route) => route !== fallback).map(compile);
  compiled.sort(moreSpecificFirst);
  return (method, path) => {
    const parts = split(path);
    for (const candidate of compiled) {
      if (candidate.method !== 'ANY' && candidate.method !== method) continue;
      const parameters = match(candidate.segments, parts);
      if (parameters === undefined) continue;
      return Object.keys(parameters).length > 0
        ? { route: candidate.route, pathParameters: parameters }
        : { route: candidate.route };
    }
    return fallback === undefined ? undefined : { route: fallback };
  };
}

function split(path: string): string[] {
  return path.replace(/^\//, '').split('/');
}

function compile<Target>(route: Route<Target>): CompiledRoute<Target> {
  const [method = '', path = ''] = route.routeKey.split(' ');
  const segments = split(path).map((text): Segment => {
    if (text.startsWith('{') && text.endsWith('+}')) return { kind: 'greedy', text: text.slice(1, -2) };
    if (text.startsWith('{') && text.endsWith('}')) return { kind: 'variable', text: text.slice(1, -1) };
    return { kind: 'literal', text };
  });
  return { route, method, segments };
}

function moreSpecificFirst(a: CompiledRoute<unknown>, b: CompiledRoute<unknown>): number {
  for (let index = 0; index < Math.max(a.segments.length, b.segments.length); index += 1) {
    const left = a.segments[index];
    const right = b.segments[index];
    if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
    if (left.kind !== right.kind) return RANK[left.kind] - RANK[right.kind];
  }
  return Number(a.method === 'ANY') - Number(b.method === 'ANY');
}

function match(segments: readonly Segment[], parts: readonly string[]): Record<string, string> | undefined {
  const parameters: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index];
    if (segment.kind === 'greedy') {
      const rest = parts.slice(index).join('/');
      if (rest === '') return undefined;
      parameters[segment.text] = rest;
      return parameters;
    }
    if (part === undefined) return undefined;
    if (segment.kind === 'literal' && segment.text !== part) return undefined;
    if (segment.kind === 'variable') {
      if (part === '') return undefined;
      parameters[segment.text] = part;
    }
  }
  return parts.length === segments.length ? parameters : undefined;
}
