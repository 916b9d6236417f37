/** The edges of the use graph while it is built. */
import ts from 'typescript';
import type { Declarations } from './declarations.ts';

export class Edges {
  readonly uses = new Map<ts.Node, Set<ts.Node>>();
  readonly namesUsed = new Map<ts.Node, Set<string>>();
  readonly #checker: ts.TypeChecker;
  readonly #declarations: Declarations;

  constructor(checker: ts.TypeChecker, declarations: Declarations) {
    this.#checker = checker;
    this.#declarations = declarations;
  }

  add(from: ts.Node, to: ts.Node): void {
    if (from === to || !this.#declarations.isTracked(to)) return;
    const present = this.uses.get(from);
    if (present === undefined) this.uses.set(from, new Set([to]));
    else present.add(to);
  }

  addName(from: ts.Node, name: string): void {
    const present = this.namesUsed.get(from);
    if (present === undefined) this.namesUsed.set(from, new Set([name]));
    else present.add(name);
  }

  addSymbol(from: ts.Node, symbol: ts.Symbol): void {
    for (const declaration of this.#declarations.resolved(symbol).declarations ?? []) this.add(from, declaration);
  }

  addProperty(from: ts.Node, type: ts.Type, name: string): void {
    const parts = type.isUnion() ? type.types : [type];
    for (const part of parts) {
      const property = this.#checker.getPropertyOfType(this.#checker.getNonNullableType(part), name);
      if (property !== undefined) this.addSymbol(from, property);
      else if (part.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) this.addName(from, name);
    }
  }
}
