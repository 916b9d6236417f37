/**
 * Edges that follow from assignments. The caller of an interface member may call that member of every object that is
 * assigned to the interface.
 */
import ts from 'typescript';
import { type Declarations, isOurs } from './declarations.ts';
import type { Edges } from './edges.ts';

/** Nested types are followed to these depths. */
const LINK_DEPTH_MAX = 6;
const ESCAPE_DEPTH_MAX = 3;

const FOLLOWED = ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection | ts.TypeFlags.TypeParameter;

const idOf = (type: ts.Type): number => (type as unknown as { id: number }).id;

export class TypeLinks {
  readonly #checker: ts.TypeChecker;
  readonly #declarations: Declarations;
  readonly #edges: Edges;
  /** Pairs of types, and escapes, that are done. */
  readonly #done = new Set<string>();

  constructor(checker: ts.TypeChecker, declarations: Declarations, edges: Edges) {
    this.#checker = checker;
    this.#declarations = declarations;
    this.#edges = edges;
  }

  /** A value that cannot be followed further: all its members count as used. */
  escape(from: ts.Node, type: ts.Type, depth = 0): void {
    if (depth > ESCAPE_DEPTH_MAX || !(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection))) return;
    if (!this.#isFirst(`escape ${idOf(type)} ${from.getSourceFile().fileName}:${from.pos}`)) return;
    if (type.isUnion()) {
      for (const part of type.types) this.escape(from, part, depth);
      return;
    }
    for (const property of this.#checker.getPropertiesOfType(type)) {
      if (!isOurs(property)) continue;
      this.#edges.addSymbol(from, property);
      this.escape(from, this.#checker.getTypeOfSymbol(property), depth + 1);
    }
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      this.escape(from, signature.getReturnType(), depth + 1);
    }
    for (const argument of this.#typeArguments(type)) this.escape(from, argument, depth + 1);
  }

  /** A value of type `source` is assigned to `target`. */
  link(from: ts.Node, source: ts.Type, target: ts.Type, depth = 0): void {
    if (source === target || depth > LINK_DEPTH_MAX) return;
    if (target.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.NonPrimitive)) {
      this.escape(from, source);
      return;
    }
    if (!(source.flags & FOLLOWED) || !(target.flags & FOLLOWED)) return;
    if (!this.#isFirst(`${idOf(source)} ${idOf(target)}`)) return;
    if (target.isUnion()) {
      for (const part of target.types) this.link(from, source, part, depth);
    } else if (source.isUnion()) {
      for (const part of source.types) this.link(from, part, target, depth);
    } else if (target.flags & ts.TypeFlags.TypeParameter) {
      const constraint = this.#checker.getBaseConstraintOfType(target);
      if (constraint !== undefined && constraint !== target) this.link(from, source, constraint, depth + 1);
    } else {
      this.#linkTypeArguments(from, source, target, depth);
      this.#linkIndexedMembers(from, source, target, depth);
      this.#linkMembers(from, source, target, depth);
      this.#linkSignatures(from, source.getCallSignatures(), target.getCallSignatures(), depth);
      this.#linkSignatures(from, source.getConstructSignatures(), target.getConstructSignatures(), depth);
    }
  }

  #isFirst(key: string): boolean {
    if (this.#done.has(key)) return false;
    this.#done.add(key);
    return true;
  }

  #typeArguments(type: ts.Type): readonly ts.Type[] {
    return type.flags & ts.TypeFlags.Object && (type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference
      ? this.#checker.getTypeArguments(type as ts.TypeReference)
      : [];
  }

  #linkTypeArguments(from: ts.Node, source: ts.Type, target: ts.Type, depth: number): void {
    const targetArguments = this.#typeArguments(target);
    for (const [index, argument] of this.#typeArguments(source).entries()) {
      const other = targetArguments[index];
      if (other !== undefined) this.link(from, argument, other, depth + 1);
    }
  }

  /** A record by string keys may be read by any key. */
  #linkIndexedMembers(from: ts.Node, source: ts.Type, target: ts.Type, depth: number): void {
    const [value] = this.#checker.getIndexInfosOfType(target);
    if (value === undefined) return;
    for (const property of this.#checker.getPropertiesOfType(source)) {
      if (!isOurs(property)) continue;
      this.#edges.addSymbol(from, property);
      this.link(from, this.#checker.getTypeOfSymbol(property), value.type, depth + 1);
    }
  }

  #linkMembers(from: ts.Node, source: ts.Type, target: ts.Type, depth: number): void {
    for (const property of this.#checker.getPropertiesOfType(target)) {
      const own = this.#checker.getPropertyOfType(source, property.name);
      if (own === undefined || own === property || !isOurs(own)) continue;
      const expected = (property.declarations ?? []).filter(
        (each) => !each.getSourceFile().isDeclarationFile && this.#declarations.isTracked(each),
      );
      for (const assigned of own.declarations ?? []) {
        for (const each of expected) this.#edges.add(each, assigned);
        // A library may call it, or it is a property of a mapped type.
        if (expected.length === 0) this.#edges.add(from, assigned);
      }
      this.link(from, this.#checker.getTypeOfSymbol(own), this.#checker.getTypeOfSymbol(property), depth + 1);
    }
  }

  #linkSignatures(
    from: ts.Node,
    sources: readonly ts.Signature[],
    targets: readonly ts.Signature[],
    depth: number,
  ): void {
    for (const target of targets) {
      for (const source of sources) {
        this.link(from, source.getReturnType(), target.getReturnType(), depth + 1);
        for (const [index, parameter] of source.parameters.entries()) {
          const other = target.parameters[index];
          if (other === undefined) break;
          const otherType = this.#checker.getTypeOfSymbol(other);
          this.link(from, otherType, this.#checker.getTypeOfSymbol(parameter), depth + 1);
        }
      }
    }
  }
}
