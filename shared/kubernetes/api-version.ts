/** `v1`, or `<group>/<version>`. '' is the core group. */
export const apiVersionOf = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`;
