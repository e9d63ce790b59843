// The official TypeScript SDK: its helpers for streams, tools, parsed outputs and counting.
import Anthropic from "@anthropic-ai/sdk";

const MODEL = "claude-sonnet-4-6";
const client = new Anthropic({ maxRetries: 0 });
const messages = [{ role: "user", content: "Hello" }];
const base = { model: MODEL, max_tokens: 1000, messages };
const tool = {
  name: "list_files",
  description: "List the files of a folder.",
  input_schema: { type: "object", properties: { path: { type: "string" } } },
};
const found = [];

async function check(name, run) {
  try {
    await run();
    found.push({ check: name, error: "" });
  } catch (error) {
    found.push({ check: name, error: String(error).slice(0, 300) });
  }
}

function assert(value) {
  if (!value) throw new Error("the check does not hold");
}

await check("whole answer", async () => {
  assert((await client.messages.create(base)).content[0].text);
});
await check("messages.stream", async () => {
  const stream = client.messages.stream(base);
  let text = "";
  stream.on("text", (part) => { text += part; });
  assert((await stream.finalText()) === text && text);
});
await check("tool round", async () => {
  const asked = { ...base, tools: [tool], messages: [{ role: "user", content: "list files" }] };
  const answer = await client.messages.create(asked);
  const call = answer.content.find((block) => block.type === "tool_use");
  const result = { type: "tool_result", tool_use_id: call.id, content: "a.txt\nb.txt" };
  const more = [{ role: "assistant", content: answer.content }, { role: "user", content: [result] }];
  const last = await client.messages.create({ ...asked, messages: [...asked.messages, ...more] });
  assert(last.content.some((block) => block.text?.includes("b.txt")));
});
await check("tool runner", async () => {
  const runner = client.beta.messages.toolRunner({
    ...base,
    messages: [{ role: "user", content: "list files" }],
    tools: [{ ...tool, run: () => "a.txt\nb.txt" }],
  });
  const last = await runner.runUntilDone();
  assert(last.content.some((block) => block.text?.includes("b.txt")));
});
await check("structured output", async () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, people: { type: "integer" } },
    required: ["name", "people"],
    additionalProperties: false,
  };
  const asked = { ...base, output_config: { format: { type: "json_schema", schema } } };
  const answer = await client.messages.create(asked);
  const city = JSON.parse(answer.content.find((block) => block.type === "text").text);
  assert(typeof city.name === "string" && Number.isInteger(city.people));
});
await check("countTokens", async () => {
  assert((await client.messages.countTokens({ model: MODEL, messages })).input_tokens > 0);
});
await check("models.list", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert(ids.includes(MODEL));
});
console.log("\n" + JSON.stringify(found));
