/** Nested values under dotted names, as filters and columns name them. */
export function flatten(value: Record<string, unknown>, before = ""): Record<string, unknown> {
  const flat: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const whole = before + name;
    const isNested = typeof inner === "object" && inner !== null && !Array.isArray(inner) && !("_type" in inner);
    if (isNested && Object.keys(inner).length) Object.assign(flat, flatten(inner as Record<string, unknown>, `${whole}.`));
    else flat[whole] = inner;
  }
  return flat;
}
