/** The code that runs from a set of starts, and the rest that should run. */
import { relative } from 'node:path';
import ts from 'typescript';
import { isMember, isTopLevel } from './declarations.ts';
import type { UseGraph } from './graph.ts';

/** The reached declarations, each with the one that reached it first; undefined for a start. */
export type Reached = ReadonlyMap<ts.Node, ts.Node | undefined>;

/** All code that runs, and its types, when the modules `starts` run and their exports are called. */
export function reachedFrom(
  graph: UseGraph,
  starts: readonly ts.SourceFile[],
  within: (file: ts.SourceFile) => boolean,
): Reached {
  const reached = new Map<ts.Node, ts.Node | undefined>();
  const names = new Set<string>();
  const waiting: ts.Node[] = [];
  const reach = (node: ts.Node, by: ts.Node | undefined): void => {
    if (reached.has(node) || !within(node.getSourceFile())) return;
    reached.set(node, by);
    waiting.push(node);
  };
  for (const file of starts) for (const node of [file, ...graph.exportsOf(file)]) reach(node, undefined);
  for (let at = 0; at < waiting.length; at += 1) {
    const node = waiting[at] as ts.Node;
    for (const used of graph.uses.get(node) ?? []) reach(used, node);
    for (const name of graph.namesUsed.get(node) ?? []) {
      if (names.has(name)) continue;
      names.add(name);
      for (const member of graph.members.get(name) ?? []) reach(member, node);
    }
  }
  return reached;
}

export interface SweptSymbol {
  /** `path#name`, of a member `path#owner.name`. */
  readonly id: string;
  readonly line: number;
  readonly isReached: boolean;
}

const isExported = (node: ts.Node): boolean =>
  (ts.getCombinedModifierFlags(node as ts.Declaration) & ts.ModifierFlags.Export) !== 0;

const nameOf = (node: ts.Node): string | undefined => {
  const name = (node as ts.NamedDeclaration).name;
  return name !== undefined && (ts.isIdentifier(name) || ts.isPrivateIdentifier(name) || ts.isStringLiteral(name))
    ? name.text
    : undefined;
};

/** Exported declarations of a file, and members that are functions; members of what is not reached are left out. */
export function symbolsOf(graph: UseGraph, file: ts.SourceFile, reached: Reached, root: string): SweptSymbol[] {
  const path = relative(root, file.fileName);
  const exported = new Set(graph.exportsOf(file).filter((node) => node.getSourceFile() === file));
  const own = new Set([...graph.members.values()].flat().filter((node) => node.getSourceFile() === file));
  const found: SweptSymbol[] = [];
  const add = (node: ts.Node, names: readonly string[]): void => {
    const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
    found.push({ id: `${path}#${names.join('.')}`, line, isReached: reached.has(node) });
  };
  const visit = (node: ts.Node, names: readonly string[]): void => {
    const name = nameOf(node);
    const isNamed =
      name !== undefined &&
      (ts.isFunctionLike(node) || ts.isVariableDeclaration(node) || isMember(node) || isTopLevel(node));
    const inner = isNamed ? [...names, name] : names;
    const isCandidate = (isTopLevel(node) && (exported.has(node) || isExported(node))) || own.has(node);
    if (isCandidate && name !== undefined) {
      add(node, inner);
      if (!reached.has(node)) return;
    }
    if (isTopLevel(node) && !isCandidate && name !== undefined && !reached.has(node)) return;
    ts.forEachChild(node, (child) => visit(child, inner));
  };
  visit(file, []);
  return found;
}
