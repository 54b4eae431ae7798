/** `import path from "….node" with { type: "file" }`: where the addon lies, inside the executable when compiled. */
declare module "*.node" {
  const path: string;
  export default path;
}
