type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * The object without its undefined members: an optional property is absent, not undefined. A tick calls this for every
 * node, so it creates one object and nothing else.
 */
export function defined<T extends object>(object: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name];
  return kept as unknown as Defined<T>;
}
